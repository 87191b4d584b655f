"""How savings grow, month by month."""


def months_until(goal, monthly, saved, tiers, most):
    """(months, interest earned) until `goal` is reached; None where `most` months are not enough.

    `tiers` are {"from": amount, "percent": a year}, in rising order: each part of the savings earns its own rate.
    """
    months, interest = 0, 0.0
    while saved < goal:
        if months == most:
            return None
        earned = sum(_earned(saved, tier, above) for tier, above in _with_next(tiers)) / 12
        saved += earned + monthly
        interest += earned
        months += 1
    return months, interest


def spoken(months):
    years, rest = divmod(months, 12)
    parts = [_counted(years, "year"), _counted(rest, "month")]
    return " and ".join(part for part in parts if part) or "no time at all"


def _earned(saved, tier, above):
    part = min(saved, above) - tier["from"]
    return max(part, 0) * tier["percent"] / 100


def _with_next(tiers):
    bounds = [tier["from"] for tier in tiers[1:]] + [float("inf")]
    return zip(tiers, bounds, strict=True)


def _counted(count, word):
    if not count:
        return ""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
