"""A request as it is behind `login_required`."""

from django.contrib.auth.models import User
from django.http import HttpRequest


class SignedInRequest(HttpRequest):
    """For annotations only: the person is known."""

    user: User
