"""Why installing failed, from what the installer printed, in words that say what to do."""

import re
from collections.abc import Callable
from typing import TypeAlias

from engine.tools.environments.needs import python_version

_Words: TypeAlias = Callable[[re.Match[str]], str]


def explain(output: str, *, no_source: str = "") -> str:
    """One or two sentences about the last thing that went wrong in `output`, of uv or of pip.

    `no_source` says why nothing could be built from its source, where that was so.
    """
    text = _flat(output)
    for pattern, words in _FAULTS:
        if found := pattern.search(text):
            return words(found)
    if found := _NOT_BUILT.search(text):
        said = _last_words(output)
        return f"{found.group(1)!r} could not be built from its source{f': {said}' if said else '; see the log.'}"
    if found := _NEEDS_SOURCE.search(text):
        named = _WITHOUT_WHEEL.search(text)
        return needs_source(named.group(1) if named else "", no_source)
    for pattern, words in _RESOLUTION:
        if found := pattern.search(text):
            return words(found) + _or_source(text, no_source)
    return f"Installing failed: {_first_error(output)}"


def wants_source(output: str) -> bool:
    """Whether it failed because a package is there only as source, which was not to be used."""
    return bool(_NEEDS_SOURCE.search(_flat(output))) or _NO_DISTRIBUTION in output


def needs_source(what: str, why: str) -> str:
    """That `what`, a requirement or package, would run code, and `why` it may not."""
    named = repr(what) if what else "A package"
    return (
        f"{named} is not offered as a ready-made wheel, so that code of its own would have to run while "
        f"it is installed. {why} Ask for a version that has a wheel, or add a wheel to the package."
    )


def _flat(output: str) -> str:
    """One line: the installers draw and wrap their explanations."""
    return " ".join(re.sub(r"[│├╰─▶×╭╮╯]|(?<=\n)\s*cause:", " ", output).split())


def _or_source(text: str, no_source: str) -> str:
    if not no_source or _NO_DISTRIBUTION not in text:
        return ""
    return f" Or it is offered only as source, which runs code while it is installed. {no_source}"


def _last_words(output: str) -> str:
    """Of what a package's own code printed before it failed."""
    printed = re.split(r"\n(?:hint|note|error)\b", output.rpartition("[stderr]")[2])[0]
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return lines[-1][:300] if "[stderr]" in output and lines else ""


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    errors = [line for line in lines if re.match(r"(error|ERROR|fatal):? ", line)]
    return (errors or [line for line in lines if line] or ["it said nothing about why"])[0][:500]


def _said(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _found: text


def _no_package(found: re.Match[str]) -> str:
    return (
        f"There is no package {found.group(1)!r} where packages are looked for. "
        "Correct its name in requirements.txt, or remove the line."
    )


def _no_version(found: re.Match[str]) -> str:
    return (
        f"No version fits {found.group(1).strip()!r}. Correct the version in requirements.txt, "
        "or leave it out to get the newest."
    )


def _other_python(found: re.Match[str]) -> str:
    return (
        f"{found.group(1)!r} needs Python {found.group(2).rstrip('.,;')}, and this is Python {python_version()}. "
        "Ask for another version of it."
    )


def _other_platform(found: re.Match[str]) -> str:
    return (
        f"{found.group(1)!r} has no wheel for this machine (Python {python_version()}). "
        "Ask for another version of it, or another package."
    )


def _conflict(found: re.Match[str]) -> str:
    """From the resolver's proof: what is asked for, and what one of them needs."""
    said = re.findall(
        r"you require (.+?)(?=, we can conclude|\.?\s*$|\.\s)", found.string, re.MULTILINE
    )
    asked = dict.fromkeys(each for part in said for each in part.split(" and "))
    needs = dict.fromkeys(re.findall(r"[Bb]ecause (\S+ depends on \S+?)[,.]?(?=\s)", found.string))
    # What is proved to be required, because another depends on it, nobody wrote.
    derived = {each.rpartition(" ")[2] for each in needs}
    written = [each for each in asked if each not in derived] or [found.group(1)]
    reason = f" {'; '.join(needs)}." if needs else ""
    return (
        f"These requirements cannot be had together: {' and '.join(written)}.{reason} "
        "Loosen the version of one of them."
    )


def _pip_conflict(found: re.Match[str]) -> str:
    return f"These requirements cannot be had together: {found.group(1)}. Loosen the version of one of them."


def _not_parsed(found: re.Match[str]) -> str:
    return f"A line of requirements.txt cannot be read: {found.group(1).strip(' ^')}"


def _not_reached(found: re.Match[str]) -> str:
    address = re.search(r"https?://[^\s/)'\",]+", found.string)
    return (
        f"The place where packages come from cannot be reached{f': {address.group(0)}' if address else ''}. "
        "See whether this machine may use the network, and try again."
    )


def _compiled(rows: list[tuple[str, _Words]]) -> tuple[tuple[re.Pattern[str], _Words], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in rows)


_NEEDS_SOURCE = re.compile(
    r"Wheels are required for|Building source distributions.{0,80} is disabled|has no usable wheels",
    re.IGNORECASE,
)
_WITHOUT_WHEEL = re.compile(
    r"(?:Wheels are required for|Building source distributions for) `([^`]+)`", re.IGNORECASE
)
_NO_DISTRIBUTION = (
    "No matching distribution found"  # pip says the same of what is there only as source
)
_NOT_BUILT = re.compile(
    r"Failed (?:to (?:download and )?build|building wheel for) [`']?([^\s`']+)", re.IGNORECASE
)
_FAULTS = _compiled(
    [
        (
            r"No space left on device|os error 28|Errno 28|Disk quota exceeded|os error 122",
            _said("The disk is full. Make room, and try again."),
        ),
        (
            r"Hash mismatch for `?([^`\s]+)|DO NOT MATCH THE HASHES",
            _said(
                "A package is not the one that its hash in requirements.txt promises. Correct the hash."
            ),
        ),
        (r"Couldn't parse requirement in `[^`]*`(?: at position \d+)? (.{1,200})", _not_parsed),
        (r"(Invalid requirement: .{1,200}?)(?: Hint:|$)", _not_parsed),
        (
            r"Unexpected '[^']*', expected .{1,80}|error: (no such option: \S+)",
            _said("A line of requirements.txt cannot be read. The log says which."),
        ),
        (
            r"\b(?:401|403) (?:Unauthorized|Forbidden)|status client error \((?:401|403)",
            _said(
                "The place where packages come from asks for a name and password, or refused those that are "
                "configured on this machine."
            ),
        ),
        (
            (
                r"dns error|tcp connect error|failed to lookup address|Connection refused|operation timed out"
                r"|NewConnectionError|ConnectTimeoutError|Read timed out|certificate verify failed|invalid peer cert"
                r"|Network is unreachable|Couldn't connect to server|Could not resolve host|Failed to fetch"
            ),
            _not_reached,
        ),
    ]
)
_RESOLUTION = _compiled(
    [
        (
            r"Because (\S+) was not found in the (?:package registry|provided package locations)",
            _no_package,
        ),
        (r"(?:Because|and) (\S+) was not found in the", _no_package),
        (r"there (?:is|are) no versions? of (\S+)", _no_version),
        (
            r"only the following versions of \S+ are available.*? you require (\S+?),? we can",
            _no_version,
        ),
        (r"Because (\S+) requires Python ?(\S+)", _other_python),
        (r"Package '([^']+)' requires a different Python: \S+ not in '([^']+)'", _other_python),
        (r"Because (\S+) has no wheels with a matching", _other_platform),
        (
            r"you require (.{1,300}?), we can conclude that your requirements are unsatisfiable",
            _conflict,
        ),
        (
            r"Cannot install (.{1,300}?) because these package versions have conflicting",
            _pip_conflict,
        ),
        (r"\(from versions: none\).*?No matching distribution found for (\S+)", _no_package),
        (r"No matching distribution found for ([^()\n]{1,100}?)(?: \(|$)", _no_version),
    ]
)
