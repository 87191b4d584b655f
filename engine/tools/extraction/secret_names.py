"""Names that say that their value is a secret: `api_key`, `clientSecret`, not `max_tokens` or `key_name`."""

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_SECRETS = frozenset(
    """password passwords passwd passphrase passcode pwd secret secrets token credential credentials creds
    apikey secretkey privatekey accesskey authkey authtoken accesstoken apitoken connectionstring connstr
    dsn bearer auth authorization jwt pat cookie cookies""".split()
)
"""A name whose last word is one of these."""

_KEYS = frozenset(
    """api private access secret encryption decryption signing account auth license licence subscription shared
    service master ssh function consumer client app application deploy deployment hmac webhook admin
    rsa pem""".split()
)
"""`key` and `keys` after one of these; alone they are mostly keys of a mapping."""

_TOKENS = frozenset("api access auth bearer refresh session id security sas oauth".split())
"""`tokens` after one of these; alone they are mostly counted."""

_ADDRESSES = frozenset(
    "database db mongo mongodb postgres postgresql mysql mariadb redis amqp rabbitmq broker webhook".split()
)
"""`url` and `uri` after one of these hold a password more often than not."""

_NO_TOKENS = frozenset(
    "page next previous continuation cursor sync stop start end eos bos pad unk sep mask cls special".split()
)
"""`token` after one of these is a place in a list or a piece of text."""

_PAIRS = frozenset(
    {
        *(("connection", "string"), ("conn", "string"), ("conn", "str")),
        *(("pass", "phrase"), ("pass", "word")),
    }
)

_SAYING_NOTHING = frozenset("value string str text header plain raw base b pem v".split())
"""Last words that leave the secret what it is: `token_value`, `password_base64`."""


def names_a_secret(name: str) -> bool:
    """Whether a field of this name holds what nobody but the tool should see."""
    words = [word.lower() for word in _WORD.findall(name)]
    if tuple(words[-2:]) in _PAIRS:
        return True
    while len(words) > 1 and words[-1] in _SAYING_NOTHING:
        words.pop()
    if not words:
        return False
    *_, before, last = ["", *words]
    if last in ("key", "keys"):
        return before in _KEYS
    if last in ("url", "uri"):
        return before in _ADDRESSES
    if last == "tokens":
        return before in _TOKENS
    return (last in _SECRETS and not (last == "token" and before in _NO_TOKENS)) or (
        before,
        last,
    ) in _PAIRS
