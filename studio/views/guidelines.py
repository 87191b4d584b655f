"""An agent's guidelines: the table, and the editor that opens beside it."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import push_url

from studio.access import May, allowed, load_agent, load_guideline
from studio.forms.guidelines import GuidelineForm
from studio.guideline_figures import figures_of
from studio.http import announce, is_part, show
from studio.models import Agent, Guideline, Rematch, Tool
from studio.models.guideline import said_by_tools
from studio.operations.agents import (
    GuidelineChangedError,
    place_guideline,
    set_enabled,
)
from studio.operations.contents import GuidelineContent
from studio.operations.removal import DeletedGuideline, delete_guideline, undelete_guideline
from studio.views.guarding import guarding
from studio.views.guideline_list import Chosen, list_context
from studio.views.relation_lines import lines_of
from studio.views.signed_in import SignedInRequest

_PAGE = "guidelines/list.html"
_KEPT_DELETED = 10
_DELETED = "deleted_guidelines"  # in the session of who deleted them


def _address(agent: Agent, chosen: Chosen, name: str = "guidelines", **key: str) -> str:
    """A page of this agent's guidelines, with the filters of the table."""
    return reverse(name, kwargs={"slug": agent.slug, **key}) + chosen.query


def _page(
    request: SignedInRequest, agent: Agent, *, status: int = 200, **panel: Any
) -> HttpResponse:
    """The table with what stands beside it; of these, for htmx, the part it asked for."""
    chosen = Chosen.read(request.GET)
    part = "editor" if request.headers.get("HX-Target") == "editor" else "guidelines"
    context: dict[str, Any] = {
        "agent": agent,
        "chosen": chosen,
        "may_write": allowed(request.user, May.WRITE_GUIDELINES),
        **panel,
    }
    if part == "guidelines" or not is_part(request):
        context |= list_context(agent, chosen)
    if form := panel.get("form"):
        context["picker"] = _picker(form, context.get("tools") or list(agent.tools.all()))
        context["responses"] = _responses(form)
    if guideline := panel.get("guideline"):
        context["relations"] = lines_of(guideline)
        context["did"] = figures_of(guideline)
        context["guarding"] = guarding(guideline)
        context["may_test"] = allowed(request.user, May.TEST)
    return show(request, _PAGE, context, part=part, status=status)


def _picker(form: GuidelineForm, tools: list[Tool]) -> dict[str, Any]:
    """The agent's tools: those that are attached first, in full, and the others to choose from."""
    attached, after = (set(form[name].value() or []) for name in ("tools", "reevaluate_after"))
    chosen = [tool for tool in tools if tool.name in attached]
    if derived := said_by_tools(chosen):
        words = _("from the tool: %(words)s") % {"words": derived}
        form.fields["action"].widget.attrs["placeholder"] = words
    return {
        "attached": chosen,
        "others": [tool for tool in tools if tool.name not in attached],
        "all": tools,
        "after": after,
    }


def _responses(form: GuidelineForm) -> dict[str, Any]:
    """The agent's canned responses: those that are chosen, and the others."""
    chosen = set(form["canned_responses"].value() or [])
    rows = list(form.agent.canned_responses.all())
    return {
        "chosen": [row for row in rows if row.uid in chosen],
        "others": [row for row in rows if row.uid not in chosen],
    }


@login_required
@require_GET
def guideline_list(request: SignedInRequest, slug: str) -> HttpResponse:
    """The table; filters, search and page are in the address."""
    agent = load_agent(request.user, slug)
    uid = request.GET.get("deleted", "")
    kept = _kept(request, agent, uid) if uid else None
    response = _page(request, agent, deleted=kept)
    if request.headers.get("HX-Trigger") == "search":  # without the filters that are left empty
        push_url(response, _address(agent, Chosen.read(request.GET)))
    return response


@login_required
@require_http_methods(["GET", "POST"])
def new_guideline(request: SignedInRequest, slug: str) -> HttpResponse:
    """The editor with nothing in it yet."""
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    if request.method == "GET":
        return _page(request, agent, form=GuidelineForm(agent=agent))
    form = GuidelineForm(request.POST, agent=agent)
    return _save(request, agent, form)


@login_required
@require_http_methods(["GET", "POST"])
def guideline_page(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """One guideline in the editor, beside the table."""
    if request.method == "GET":
        guideline = load_guideline(request.user, slug, uid)
        if is_part(request) and request.headers.get("HX-Target") == "relations":
            return _relations(request, guideline)
        tried = _tried_wording(request, guideline)
        wording = {"condition": tried.condition} if tried is not None else None
        form = GuidelineForm(agent=guideline.agent, instance=guideline, initial=wording)
        return _page(request, guideline.agent, form=form, guideline=guideline, tried=tried)
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    found = agent.guidelines.filter(uid=uid).first()
    if found is None:
        return _conflict(request, agent, None)
    return _save(request, agent, GuidelineForm(request.POST, agent=agent, instance=found))


def _tried_wording(request: SignedInRequest, guideline: Guideline) -> Rematch | None:
    """What was tried on a turn and shall be the condition here (`?wording=`); only its author saves it."""
    chosen = request.GET.get("wording", "")
    if (
        not chosen.isdecimal()
        or len(chosen) > 18
        or not allowed(request.user, May.WRITE_GUIDELINES)
    ):
        return None
    tried = Rematch.objects.filter(turn__session__agent=guideline.agent, guideline=guideline.uid)
    return tried.select_related("turn").filter(pk=int(chosen)).first()


def _relations(request: SignedInRequest, guideline: Guideline) -> HttpResponse:
    """What relates it to others, as it stands below the editor."""
    context = {
        "agent": guideline.agent,
        "guideline": guideline,
        "relations": lines_of(guideline),
        "may_write": allowed(request.user, May.WRITE_GUIDELINES),
    }
    return show(request, "guidelines/_relations.html", context)


def _save(request: SignedInRequest, agent: Agent, form: GuidelineForm) -> HttpResponse:
    known = form.instance.pk is not None
    if not form.is_valid():
        # The row as it is stored, not as the form would make it.
        stored = agent.guidelines.filter(pk=form.instance.pk).first() if known else None
        return _refused(request, agent, form=form, guideline=stored)
    try:
        guideline = form.save()
    except GuidelineChangedError as error:
        return _conflict(request, agent, error.stored)
    chosen = Chosen.read(request.GET)
    address = _address(agent, chosen, "guideline", uid=guideline.uid)
    if not is_part(request):
        messages.success(request, _("Saved. The next turn runs on it."))
        return redirect(address)
    form = GuidelineForm(agent=agent, instance=guideline)
    response = _page(request, agent, form=form, guideline=guideline, saved=True)
    return announce(push_url(response, address), "guideline:saved", uid=guideline.uid)


def _refused(request: SignedInRequest, agent: Agent, **panel: Any) -> HttpResponse:
    return _page(request, agent, status=422, **panel)


def _conflict(request: SignedInRequest, agent: Agent, stored: Guideline | None) -> HttpResponse:
    """What this person wrote, beside what somebody else stored meanwhile; saving again is then meant."""
    data = request.POST.copy()
    data["updated_at"] = stored.updated_at.isoformat() if stored else ""
    form = GuidelineForm(data, agent=agent, instance=stored)
    theirs = GuidelineForm(agent=agent, instance=stored) if stored else None
    differences = [
        (theirs[name].label, _in_words(theirs, name))
        for name in form.changed_data
        if theirs is not None and name != "updated_at"
    ]
    return _refused(
        request,
        agent,
        form=form,
        guideline=stored,
        conflict={"deleted": stored is None, "differences": differences},
    )


def _in_words(form: GuidelineForm, name: str) -> str:
    value = form[name].value()
    if name == "criticality":
        return str(form.instance.get_criticality_display())
    if name == "composition":
        return str(form.instance.get_composition_display() or _("As the agent writes"))
    if name == "canned_responses":
        return "\n".join(str(row) for row in form.instance.canned_responses.all())
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        value = ", ".join(value)
    return str(value)


@login_required
@require_http_methods(["GET", "POST"])
def guideline_delete(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """Asks first; what was deleted can be brought back by who did it."""
    guideline = load_guideline(request.user, slug, uid, May.WRITE_GUIDELINES)
    agent = guideline.agent
    if request.method == "GET":
        return _page(request, agent, guideline=guideline, deleting=True)
    deleted = delete_guideline(guideline)
    kept = {"agent": agent.pk, **deleted.model_dump()}
    request.session[_DELETED] = [kept, *request.session.get(_DELETED, [])][:_KEPT_DELETED]
    chosen = Chosen.read(request.GET)
    separator = "&" if chosen.query else "?"
    address = _address(agent, chosen) + separator + urlencode({"deleted": uid})
    if not is_part(request):
        return redirect(address)
    response = _page(request, agent, deleted=deleted.guideline)
    return announce(push_url(response, address), "guideline:deleted", uid=uid)


def _kept(request: SignedInRequest, agent: Agent, uid: str) -> GuidelineContent | None:
    """A guideline that this person deleted and that is not back."""
    found = _deleted_entry(request, agent, uid)
    if found is None or agent.guidelines.filter(uid=uid).exists():
        return None
    return found.guideline


def _deleted_entry(request: SignedInRequest, agent: Agent, uid: str) -> DeletedGuideline | None:
    for entry in request.session.get(_DELETED, []):
        said = {name: entry.get(name) for name in DeletedGuideline.model_fields}
        if entry.get("agent") == agent.pk and said["guideline"] and said["guideline"]["uid"] == uid:
            return DeletedGuideline(**said)
    return None


@login_required
@require_POST
def guideline_undelete(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """Brings back what this person deleted, under its uid and at its place."""
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    entry = _deleted_entry(request, agent, uid)
    if entry is None:
        raise Http404(_("What was deleted is no longer kept; it is in the versions of the agent."))
    guideline = undelete_guideline(agent, entry)
    address = _address(agent, Chosen.read(request.GET), "guideline", uid=uid)
    if not is_part(request):
        messages.success(request, _("It is back."))
        return redirect(address)
    form = GuidelineForm(agent=agent, instance=guideline)
    response = _page(request, agent, form=form, guideline=guideline, restored=True)
    return announce(push_url(response, address), "guideline:saved", uid=uid)


@login_required
@require_POST
def guideline_enabled(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """Switches one guideline on (`enabled=yes`) or off."""
    guideline = load_guideline(request.user, slug, uid, May.WRITE_GUIDELINES)
    set_enabled(guideline.agent, [uid], enabled=request.POST.get("enabled") == "yes")
    return _changed_table(request, guideline.agent)


@login_required
@require_POST
def guidelines_enabled(request: SignedInRequest, slug: str) -> HttpResponse:
    """Switches the guidelines `uid`, each named once, on (`enabled=yes`) or off."""
    agent = load_agent(request.user, slug, May.WRITE_GUIDELINES)
    uids = request.POST.getlist("uid")
    enabled = request.POST.get("enabled") == "yes"
    count = set_enabled(agent, uids, enabled=enabled)
    if not uids:
        said = _("Tick the guidelines first.")
    elif enabled:
        said = ngettext(
            "%(count)d guideline switched on.", "%(count)d guidelines switched on.", count
        )
    else:
        said = ngettext(
            "%(count)d guideline switched off.", "%(count)d guidelines switched off.", count
        )
    return _changed_table(request, agent, said=said % {"count": count} if uids else said)


@login_required
@require_POST
def guideline_position(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """Moves it right `before` or right `after` the guideline of that uid; the same again changes nothing."""
    guideline = load_guideline(request.user, slug, uid, May.WRITE_GUIDELINES)
    after = request.POST.get("after", "")
    neighbours = guideline.agent.guidelines.filter(uid=after or request.POST.get("before", ""))
    beside = neighbours.exclude(pk=guideline.pk).first()
    said = ""
    if beside is None:
        said = _("The guideline beside it is gone; this is the order now.")
    else:
        place_guideline(guideline, beside=beside, after=bool(after))
    return _changed_table(request, guideline.agent, said=said)


def _changed_table(request: SignedInRequest, agent: Agent, *, said: str = "") -> HttpResponse:
    """The table again; the editor beside it stays as it is."""
    if is_part(request):
        return _page(request, agent, said=said)
    if said:
        messages.info(request, said)
    chosen = Chosen.read(request.GET)
    uid = request.POST.get("open", "")
    if uid and agent.guidelines.filter(uid=uid).exists():
        return redirect(_address(agent, chosen, "guideline", uid=uid))
    return redirect(_address(agent, chosen))
