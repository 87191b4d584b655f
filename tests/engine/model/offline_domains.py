"""Invented agents with messages that people might write to them, for the tests of the offline model.

Each message names the guidelines (by uid) that should match; an empty set means that none should.
"""

from dataclasses import dataclass

from engine.spec import Agent, Example, Guideline


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    agent: Agent
    messages: tuple[tuple[str, frozenset[str]], ...]


def _domain(slug: str, conditions: dict[str, str | tuple[str, ...]], messages: str) -> Domain:
    guidelines = []
    for uid, given in conditions.items():
        condition, *examples = (given,) if isinstance(given, str) else given
        guidelines.append(
            Guideline(
                uid=uid,
                condition=condition,
                action="do what fits",
                examples=tuple(Example(text=text) for text in examples),
            )
        )
    found = []
    for line in messages.strip().splitlines():
        text, _, expected = line.rpartition("=>")
        found.append((text.strip(), frozenset(expected.split())))
    agent = Agent(slug=slug, name=slug.title(), guidelines=tuple(guidelines))
    return Domain(agent=agent, messages=tuple(found))


LIBRARY = _domain(
    "library",
    {
        "hours": "the reader asks when the library is open",
        "search": "the reader looks for a book or wants to know whether a title is available",
        "renew": "the reader wants to renew a loan",
        "fines": "the reader asks about late fees or fines",
        "card": "the reader wants to get a library card",
        "rooms": "the reader wants to reserve a study room",
        "donate": "the reader wants to donate books",
        "thanks": "the reader says thanks",
    },
    """
    Until what time are you open on Fridays? => hours
    what are your opening hours => hours
    do you have The Hobbit? => search
    is there a copy of Dune available => search
    can I extend my loan for two more weeks => renew
    I'd like to renew the books I borrowed => renew
    how much is the fine if I bring a book back late => fines
    do I have to pay anything for overdue items? => fines
    how do I get a library card? => card
    can I book a study room for tomorrow at 3 => rooms
    I have three boxes of old novels to give away, can I donate them? => donate
    thank you so much! => thanks
    what is the capital of Mongolia =>
    can you fix my bicycle =>
    the weather is lovely today =>
    sing me a song =>
    can you recommend a good restaurant nearby =>
    where can I buy a new phone =>
    """,
)

PIZZA = _domain(
    "pizza",
    {
        "hello": "the customer greets you",
        "menu": "the customer asks what is on the menu",
        "order": "the customer wants to order a pizza",
        "status": "the customer asks where their order is or when it will arrive",
        "allergy": "the customer mentions an allergy or asks about ingredients",
        "vegan": "the customer asks for vegan or vegetarian options",
        "late": "the customer complains that the delivery is late or the food is cold",
        "cancel": "the customer wants to cancel an order",
        "deal": "the customer asks about discounts, coupons or special offers",
    },
    """
    hi => hello
    Good evening! => hello
    what pizzas do you have on the menu? => menu
    I'd like to order two large pepperoni pizzas => order
    can I get a margherita pizza please => order
    where is my order? => status
    when will my pizza arrive => status
    I'm allergic to nuts, what can I eat? => allergy
    does the calzone contain gluten? what are the ingredients? => allergy
    do you have anything vegan? => vegan
    my pizza is an hour late and it was cold!! => late
    please cancel my order => cancel
    any coupons or special deals this week? => deal
    how tall is the Eiffel tower =>
    I need help with my tax return =>
    tell me about quantum physics =>
    where is the nearest hospital =>
    how do I change my password =>
    """,
)

AIRLINE = _domain(
    "airline",
    {
        "book": "the passenger wants to book a flight",
        "status": "the passenger asks whether a flight is on time or delayed",
        "bag": "the passenger asks how much luggage they may bring",
        "lost": "the passenger's luggage is lost or damaged",
        "seat": "the passenger wants to choose or change their seat",
        "checkin": "the passenger asks how to check in",
        "refund": "the passenger asks for a refund or compensation",
        "pet": "the passenger wants to travel with an animal",
        "human": "the passenger asks to speak to a human agent",
    },
    """
    I want to fly from Berlin to Madrid next Friday => book
    book me a flight to Oslo on 3 December => book
    is flight LH1234 on time? => status
    has BA 22 been delayed => status
    how many bags can I take with me => bag
    what is the baggage allowance in economy => bag
    my suitcase never arrived, I think you lost it => lost
    my bag came out broken => lost
    can I get a window seat instead => seat
    how do I check in online? => checkin
    I want my money back for the cancelled flight => refund
    can I bring my dog on the plane => pet
    let me talk to a real person => human
    what's a good recipe for lasagna =>
    how do I reset my wifi router =>
    who won the football match yesterday =>
    my phone is broken =>
    how do I change my name legally =>
    """,
)

HR = _domain(
    "hr",
    {
        "leave": (
            "the employee wants to take vacation",
            "can I have next week off?",
            "I'd like to book some holidays",
        ),
        "balance": ("the employee asks how many vacation days are left", "how much PTO do I have"),
        "sick": "the employee is ill and cannot come to work",
        "payslip": "the employee asks for a payslip or about their salary payment",
        "expense": "the employee wants to get an expense reimbursed",
        "remote": "the employee asks whether they may work from home",
        "parental": "the employee asks about parental leave",
        "complaint": "the employee reports harassment or a conflict with a colleague",
        "address": "the employee wants to change their address or bank details",
    },
    """
    I would like to take next Thursday and Friday off as vacation => leave
    can I get monday off => leave
    how many holidays do I still have this year => balance
    I have a fever and won't be able to come to work today => sick
    I'm sick => sick
    where do I find my payslip for October => payslip
    when do we get our salary => payslip
    how do I get reimbursed for a train ticket => expense
    may I work from home on Wednesdays? => remote
    we're having a baby, what is the parental leave policy => parental
    I want to report harassment by a colleague => complaint
    I moved, please update my address => address
    what is the best pizza in town =>
    can you write me a poem =>
    how do volcanoes form =>
    how do I renew my passport =>
    is the supermarket open on Sunday =>
    """,
)

CLINIC = _domain(
    "clinic",
    {
        "appointment": "the patient wants to make an appointment",
        "cancel": "the patient wants to cancel or move an appointment",
        "prescription": "the patient needs a prescription or a refill",
        "results": "the patient asks about test results",
        "emergency": "the patient describes an emergency such as chest pain or trouble breathing",
        "insurance": "the patient asks which insurance is accepted",
        "hours": "the patient asks for opening hours or the address of the clinic",
        "price": "the patient asks what a treatment costs",
        "bye": "the patient says goodbye",
    },
    """
    I'd like to see a doctor, can I get an appointment on Tuesday? => appointment
    can I make an appointment with Dr. Chen => appointment
    I can't make it tomorrow, can we move my appointment to next week => cancel
    I have to cancel my appointment => cancel
    I need a refill of my blood pressure pills => prescription
    are my blood test results back yet? => results
    I have a terrible chest pain and trouble breathing => emergency
    do you accept Aetna insurance => insurance
    where is the clinic and when do you open => hours
    how much does a dental cleaning cost => price
    ok, bye => bye
    what's the exchange rate of the yen =>
    recommend me a movie =>
    my laptop does not start =>
    can you help me to write an essay =>
    what should I cook tonight =>
    """,
)

SHOP = _domain(
    "shop",
    {
        "order_status": "the customer asks about the status of an order",
        "return": "the customer wants to return an item",
        "refund_time": "the customer asks how long a refund takes",
        "stock": "the customer asks whether a product is in stock",
        "size": "the customer asks about sizes",
        "payment": "the customer has a problem with a payment",
        "shipping": "the customer asks about shipping costs or delivery times",
        "warranty": "the customer asks about the warranty",
        "gift": "the customer wants a gift card",
        "account": "the customer cannot log in to their account",
        "angry": "the customer is angry or frustrated",
    },
    """
    where's my package? order 4711 => order_status
    has my order shipped yet => order_status
    I want to send these shoes back => return
    can I return the jacket I bought last week => return
    how long until I get my refund => refund_time
    do you still have the red backpack in stock => stock
    which size should I take if I'm 180 cm tall => size
    my credit card was charged twice => payment
    how much is shipping to Norway => shipping
    does the blender come with a warranty => warranty
    I'd like to buy a gift card for my sister => gift
    I forgot my password and can't log in => account
    this is ridiculous, worst service ever => angry
    how do I bake bread =>
    what year did the war end =>
    tell me a joke =>
    how long does it take to learn the piano =>
    can you explain photosynthesis to me =>
    """,
)

DOMAINS = (LIBRARY, PIZZA, AIRLINE, HR, CLINIC, SHOP)
