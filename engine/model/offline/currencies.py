"""Currencies as people name them → ISO 4217 codes."""

import re
from functools import lru_cache

# code: symbols and names (singular); plurals follow from the rule below.
_NAMES = {
    "EUR": "€|euro",
    "USD": "$|us dollar|u.s. dollar|american dollar|us$|dollar|buck|greenback",
    "GBP": "£|pound|pound sterling|british pound|sterling|quid",
    "JPY": "¥|yen|japanese yen",
    "CHF": "swiss franc|franc|sfr",
    "CAD": "canadian dollar|c$|ca$",
    "AUD": "australian dollar|a$|au$",
    "NZD": "new zealand dollar|kiwi dollar|nz$",
    "CNY": "yuan|renminbi|rmb|chinese yuan",
    "INR": "₹|rupee|indian rupee",
    "SEK": "swedish krona|swedish crown|kronor",
    "NOK": "norwegian krone|norwegian crown|kroner",
    "DKK": "danish krone|danish crown",
    "PLN": "zł|zloty|polish zloty",
    "CZK": "kč|koruna|czech koruna|czech crown",
    "HUF": "forint|hungarian forint",
    "RON": "romanian leu|leu|lei",
    "BGN": "lev|bulgarian lev",
    "TRY": "₺|lira|turkish lira",
    "RUB": "₽|ruble|rouble|russian ruble",
    "UAH": "₴|hryvnia",
    "BRL": "r$|brazilian real|reais",
    "MXN": "mexican peso|mx$",
    "ARS": "argentine peso",
    "ZAR": "rand|south african rand",
    "KRW": "₩|korean won|south korean won",
    "SGD": "singapore dollar|s$",
    "HKD": "hong kong dollar|hk$",
    "TWD": "taiwan dollar|nt$",
    "THB": "฿|baht|thai baht",
    "IDR": "rupiah|indonesian rupiah",
    "MYR": "ringgit|malaysian ringgit",
    "PHP": "₱|philippine peso",
    "VND": "₫|vietnamese dong|dong",
    "ILS": "₪|shekel|israeli shekel",
    "AED": "dirham|uae dirham|emirati dirham",
    "SAR": "riyal|saudi riyal",
    "EGP": "egyptian pound",
    "NGN": "₦|naira",
    "KES": "kenyan shilling",
}
_PLURALS = {"yen": "yen", "yuan": "yuan", "rand": "rand", "baht": "baht"}


def _forms() -> dict[str, str]:
    forms: dict[str, str] = {}
    for code, names in _NAMES.items():
        forms[code.lower()] = code
        for name in names.split("|"):
            forms[name] = code
            if name[-1].isalpha() and name not in _PLURALS:
                forms[f"{name}s"] = code
    return forms


_FORMS = _forms()
_SYMBOLS = sorted((form for form in _FORMS if not form[-1].isalpha()), key=len, reverse=True)
_WORDS = sorted((form for form in _FORMS if form[-1].isalpha()), key=len, reverse=True)
# Codes that are English words too are read as codes in capitals only.
_AMBIGUOUS = frozenset({"try", "all", "top", "cup", "mop"})

CURRENCY_WORDS = re.compile(
    "|".join(
        [
            *(rf"(?<![A-Za-z]){re.escape(symbol)}" for symbol in _SYMBOLS),
            *(rf"\b{re.escape(word)}\b" for word in _WORDS),
        ]
    ),
    re.IGNORECASE,
)


@lru_cache(maxsize=2048)
def currency_of(word: str) -> str:
    """The ISO 4217 code that a symbol, name or code stands for, or the empty string."""
    lowered = " ".join(word.lower().split())
    if lowered in _AMBIGUOUS and not word.isupper():
        return ""
    return _FORMS.get(lowered, "")


def names_of(code: str) -> list[str]:
    """How people call the currency of an ISO 4217 code."""
    return _NAMES.get(code.upper(), "").split("|") if code.upper() in _NAMES else []
