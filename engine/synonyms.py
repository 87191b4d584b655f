"""Words that people use for one another when they write to a business, in English generally; one group a line.

A word may stand in several groups. Small groups relate their words more strongly than large ones (`engine.wording`).
"""

RELATED_WORDS = """
greeting hello hi hey howdy greetings
goodbye bye farewell
thank thanks gratitude grateful appreciate appreciation
price cost fee charge fare expensive cheap afford howmuch pricing
howmuch price cost
rate interest tariff
pay payment paid settle
bill invoice charge charged payment statement
money cash funds
balance funds howmuch
refund reimburse reimbursement moneyback repay
buy purchase order get
cancel cancellation terminate abort undo revoke
end stop quit finish terminate
change update modify edit alter adjust switch replace amend set
book reserve reservation booking schedule appointment
appointment meeting visit consultation
reschedule postpone move
begin start commence
open hours opening closing closed close
hours time when
location address where place situated located directions
distance far howfar
duration howlong long
delivery shipping shipment ship deliver package parcel courier dispatch
track tracking status whereabouts
late delayed delay overdue tardy punctual
return back
broken damaged defective faulty malfunction fault
problem issue trouble error wrong fail failing
complaint complain dissatisfied unhappy angry upset frustrated annoyed
repair fix mend service maintenance
lost missing lose misplaced stolen theft
steal stolen theft robbed
block freeze lock disable deactivate suspend hold
unblock unfreeze unlock enable activate reactivate
password passcode pin credentials
login signin signon logon
account profile
register registration signup enroll enrol enrolment enrollment join subscribe
subscription membership plan
unsubscribe leave
transfer send wire remit move
recipient payee beneficiary
exchange convert conversion swap
currency forex money
transaction spending spend purchase payment history
salary pay paycheck income wage wages earnings earn payroll
tax taxes taxation irs
insurance coverage insured policy cover
loan credit borrow mortgage lend
holiday vacation leave pto dayoff
holiday festival
sick ill illness disease symptom
doctor physician clinician medic practitioner dentist dermatologist specialist
dentist dental teeth tooth
medicine medication drug prescription pill tablet
child kid children kids toddler baby
pet dog cat animal
car vehicle automobile auto
gas fuel petrol gasoline
tire tyre tires
flight plane airplane fly flying airline airplanes
baggage luggage suitcase bag carryon
trip travel journey voyage
visa passport
hotel accommodation lodging motel room stay
train rail railway
food meal dish eat cuisine
restaurant diner eatery cafe bistro
reservation table
recipe cook cooking bake
ingredient ingredients contain made
substitute replacement alternative instead swap
calorie calories nutrition nutritional healthy
vegetarian vegan plantbased meatless
allergy allergen allergic allergies
spoil expire expiry expiration bad stale
weather rain raining sunny temperature forecast snow
music song track tune playlist
movie film
phone telephone mobile cellphone smartphone call
email mail
call phone ring dial
text sms message
contact reach
allow allowed allowance permit permitted may bring
donate donation charity
cold lukewarm
human operator representative rep staff live
bot robot ai chatbot artificial computer
name called
language speak speaks
translate translation say
meaning mean define definition
spell spelling
talk speak
repeat again
remind reminder remember
alarm wake
timer countdown
calendar event agenda schedule
todo task chore list
shopping groceries grocery shop
joke funny laugh humor
advice advise advisor adviser consultation
recommend recommendation suggest suggestion recommended
help support assistance assist aid
review rating reviews
discount coupon promotion voucher offer deal promo sale
gift present
warranty guarantee
size fit measurement
stock available availability
product item goods merchandise
quantity amount number many howmuch
limit maximum max cap
minimum min least
increase raise up higher grow
decrease reduce lower less down
loud volume quiet
fast speed quick slow quickly
age old
birthday born
job work occupation career employment
boss owner creator
hire hiring recruit
employee worker colleague
school class course lesson
teacher instructor tutor
exam test quiz
library borrow
book novel title
renew renewal extend extension
fine penalty
document paper form certificate file
sign signature
receive arrive get
activity hobby
attraction sight sightseeing touristy tourist
safe safety dangerous danger security
emergency urgent urgently immediately
fraud fraudulent scam suspicious unauthorized unauthorised
decline declined reject rejected denied refuse refused
approve approved accept accepted
apply application
eligible qualify eligibility
score rating
reward points bonus perks
traffic congestion jam
route directions path way navigate
park parking
ride taxi cab uber lyft
house home apartment
rent rental lease hire
clean cleaning wash
small little tiny
big large huge
yes yeah yep yup sure affirmative correct right
no nope nah negative
maybe perhaps possibly unsure
outlet plug socket adapter
vaccine vaccination shot jab immunization
time clock oclock
date day
today current
math calculate calculator calculation compute arithmetic plus minus times divided
sync pair connect connection link
reset restart reboot
delete remove erase
add include insert
privacy confidential
"""
