"""The settings of the studio: what there is to set, one's API tokens, and the people."""

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from studio.access import May, require, roles_of
from studio.forms.people import ROLE_WORDS, PersonForm, TokenForm
from studio.http import refused, show
from studio.models import ApiToken
from studio.operations.people import LastAdminError, add_person, change_person, new_password
from studio.views.signed_in import SignedInRequest

_PER_PAGE = 50
_MAX_TOKENS = 50


@login_required
@require_GET
def index(request: SignedInRequest) -> HttpResponse:
    """Everybody who is signed in has settings of their own; the others are shown to those who may change them."""
    context = {
        "roles": [words for role, words in ROLE_WORDS.items() if role in roles_of(request.user)],
    }
    return show(request, "settings/index.html", context)


# --- API tokens


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: SignedInRequest) -> HttpResponse:
    """One's own tokens; a new one stands in the answer to its making, and nowhere after."""
    require(request.user, May.VIEW)
    form = TokenForm(request.POST if request.method == "POST" else None)
    made = ""
    if request.method == "POST" and form.is_valid():
        if ApiToken.objects.filter(user=request.user).count() >= _MAX_TOKENS:
            form.add_error(None, _("You have many tokens already: revoke those nobody uses."))
        else:
            _row, made = ApiToken.make(request.user.pk, form.cleaned_data["name"])
    context = {
        "rows": ApiToken.objects.filter(user=request.user),
        "form": form if form.errors else TokenForm(),
        "made": made,
        "name": form.cleaned_data.get("name") if made else "",
    }
    if form.errors:
        return refused(request, "settings/tokens.html", context)
    return show(request, "settings/tokens.html", context)


@login_required
@require_POST
def token_revoke(request: SignedInRequest, pk: int) -> HttpResponse:
    require(request.user, May.VIEW)
    deleted, _rows = ApiToken.objects.filter(user=request.user, pk=pk).delete()
    if not deleted:
        raise Http404(_("You have no such token; it may be revoked already."))
    messages.success(request, _("The token is revoked: whoever uses it is refused from now on."))
    return redirect("tokens")


# --- People


def _load_person(request: SignedInRequest, pk: int) -> User:
    require(request.user, May.MANAGE_PEOPLE)
    person = User.objects.filter(pk=pk).prefetch_related("groups").first()
    if person is None:
        raise Http404(_("There is no such person."))
    return person


@login_required
@require_GET
def people(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.MANAGE_PEOPLE)
    search = request.GET.get("q", "").strip()
    rows = User.objects.prefetch_related("groups").order_by("-is_active", "username")
    if search:
        rows = rows.filter(
            Q(username__icontains=search)
            | Q(first_name__icontains=search)
            | Q(last_name__icontains=search)
        )
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    query = urlencode({"q": search}) if search else ""
    context = {"page": page, "search": search, "query": query}
    return show(request, "settings/people.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def person_new(request: SignedInRequest) -> HttpResponse:
    require(request.user, May.MANAGE_PEOPLE)
    form = PersonForm(request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return show(request, "settings/person_new.html", {"form": form})
    if not form.is_valid():
        return refused(request, "settings/person_new.html", {"form": form})
    password = add_person(form.instance, form.chosen_roles())
    context = {"person": form.instance, "password": password, "new": True}
    return show(request, "settings/person_password.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def person(request: SignedInRequest, pk: int) -> HttpResponse:
    row = _load_person(request, pk)
    form = PersonForm(request.POST if request.method == "POST" else None, instance=row)
    if request.method == "POST" and form.is_valid():
        try:
            change_person(row, form.chosen_roles())
        except LastAdminError:
            form.add_error(
                None, _("Nobody else could manage people then: make somebody else an admin first.")
            )
        else:
            messages.success(request, _("Saved. It holds from their next click on."))
            return redirect("people")
    context = {"person": row, "form": form}
    if form.errors:
        return refused(request, "settings/person.html", context)
    return show(request, "settings/person.html", context)


@login_required
@never_cache
@require_POST
def person_password(request: SignedInRequest, pk: int) -> HttpResponse:
    """A new generated password, shown once; the old one and all their signed-in browsers end."""
    row = _load_person(request, pk)
    context = {"person": row, "password": new_password(row), "new": False}
    return show(request, "settings/person_password.html", context)
