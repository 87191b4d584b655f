"""Signing in and out, one's password, and how the studio looks to this viewer."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from studio.http import is_part, refused, safe_next, show
from studio.views.signed_in import SignedInRequest

_YEAR = 365 * 24 * 3600
_THEMES = frozenset({"light", "dark", "system"})


class SignInForm(AuthenticationForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = _("User name")

    error_messages = {
        "invalid_login": gettext_lazy(
            "This user name and password do not belong together. Check both; capitals count."
        ),
        "inactive": gettext_lazy("This account is switched off. Ask an admin."),
    }


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Name and password; too many wrong ones are answered with 429 and when to come back."""
    if request.user.is_authenticated:
        return redirect(safe_next(request))
    form = SignInForm(request, data=request.POST if request.method == "POST" else None)
    context = {"form": form, "next": safe_next(request)}
    if request.method != "POST":
        return show(request, "accounts/sign_in.html", context)
    if form.is_valid():
        login(request, form.get_user())
        return redirect(safe_next(request))
    if getattr(request, "axes_locked_out", False):
        return _locked_out(request)
    return refused(request, "accounts/sign_in.html", context)


def _locked_out(request: HttpRequest) -> HttpResponse:
    request.axes_locked_out = False  # type: ignore[attr-defined]  # else axes answers, in words of its own
    wait = settings.AXES_COOLOFF_TIME
    context = {"minutes": round(wait.total_seconds() / 60)}
    response = show(request, "accounts/locked.html", context, status=429)
    response["Retry-After"] = str(round(wait.total_seconds()))
    return response


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("sign-in")


@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "POST"])
def password(request: SignedInRequest) -> HttpResponse:
    form = PasswordChangeForm(request.user, request.POST if request.method == "POST" else None)
    form.fields["old_password"].widget.attrs.pop("autofocus", None)
    if request.method == "POST":
        if form.is_valid():
            form.save()
            update_session_auth_hash(request, form.user)
            messages.success(request, _("Your password is changed. Other devices are signed out."))
            return redirect("settings")
        return refused(request, "accounts/password.html", {"form": form})
    return show(request, "accounts/password.html", {"form": form})


@login_required
@require_POST
def appearance(request: SignedInRequest) -> HttpResponse:
    """Light or dark, and whether single keys act: kept in this browser, because screens and keyboards differ."""
    response = HttpResponse(status=204) if is_part(request) else redirect(safe_next(request))
    theme, keys = request.POST.get("theme"), request.POST.get("keys")
    if theme in _THEMES:
        _keep(response, "studio_theme", theme)
    if keys in {"on", "off"}:
        _keep(response, "studio_keys", keys)
    return response


def _keep(response: HttpResponse, name: str, value: str) -> None:
    response.set_cookie(
        name,
        value,
        max_age=_YEAR,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
    )
