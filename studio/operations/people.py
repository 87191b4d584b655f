"""Who may sign in, with which roles."""

import secrets
from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Q, QuerySet

from studio.access import Role

# Without letters that are read as others, because people copy it by hand: 31 of them, 16 times, make 79 bits.
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


class LastAdminError(Exception):
    """Nobody would be left who may manage people."""


def generated_password() -> str:
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(4))


@transaction.atomic
def add_person(person: User, roles: Iterable[Role]) -> str:
    """Store a new person with a generated password, and return the password: it cannot be read again."""
    password = generated_password()
    person.set_password(password)
    person.save()
    _set_roles(person, roles)
    return password


@transaction.atomic
def change_person(person: User, roles: Iterable[Role]) -> None:
    """Store a changed person with exactly these roles. Raises LastAdminError, and then nothing is stored."""
    chosen = set(roles)
    # Locked, so that two admins cannot take the role from each other at the same moment.
    others = _admins().exclude(pk=person.pk).select_for_update()
    if not (person.is_active and Role.ADMIN in chosen) and not list(others):
        raise LastAdminError
    if Role.ADMIN not in chosen:
        person.is_superuser = False
    person.save()
    _set_roles(person, chosen)


def new_password(person: User) -> str:
    """Give a person another generated password, and return it; whoever is signed in as them is signed out."""
    password = generated_password()
    person.set_password(password)
    person.save(update_fields=["password"])
    return password


def _admins() -> QuerySet[User]:
    admin = Group.objects.filter(name=Role.ADMIN)
    return User.objects.filter(Q(is_superuser=True) | Q(groups__in=admin), is_active=True)


def _set_roles(person: User, roles: Iterable[Role]) -> None:
    wanted = {role.value for role in roles}
    groups = [Group.objects.get_or_create(name=name)[0] for name in sorted(wanted)]
    others = person.groups.exclude(name__in=[role.value for role in Role])
    person.groups.set([*others, *groups])
