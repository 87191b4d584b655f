"""The price list: what models cost."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from engine.canonical import JsonObject
from studio.access import May, load_price, require
from studio.api.auth import caller
from studio.api.problems import invalid_form
from studio.api.reading import Body, Changes, Page, Paging
from studio.forms.prices import PriceForm, price_json
from studio.models import ModelPrice

router = Router(tags=["prices"])

_MODEL = "Its name, or the beginning of it with “*” at the end; the longest that fits counts"
_PER_MILLION = "Per million tokens, a decimal"


class PriceOut(BaseModel):
    id: int
    model: str = Field(description=_MODEL)
    input_price: str = Field(description=_PER_MILLION)
    cached_price: str | None = Field(description="Of cached input; null: as other input")
    output_price: str = Field(description=_PER_MILLION)
    currency: str
    updated_by: str
    updated_at: datetime


class NewPrice(Body):
    model: str = Field(description=_MODEL)
    input_price: str | float
    cached_price: str | float | None = None
    output_price: str | float
    currency: str = "USD"


class PriceChanges(Changes):
    model: str = ""
    input_price: str | float = ""
    cached_price: str | float | None = None
    output_price: str | float = ""
    currency: str = "USD"


def _price(row: ModelPrice) -> JsonObject:
    return {
        "id": row.pk,
        **price_json(row),
        "updated_by": row.updated_by,
        "updated_at": row.updated_at,
    }


@router.get("/model-prices", response=Page[PriceOut])
def list_prices(request: HttpRequest, paging: Query[Paging]) -> JsonObject:
    """By model."""
    require(caller(request), May.VIEW)
    return paging.page(ModelPrice.objects.all(), _price)


@router.post("/model-prices", response={201: PriceOut})
def create_price(request: HttpRequest, body: NewPrice) -> Status[JsonObject]:
    require(caller(request), May.MANAGE_CONNECTIONS)
    return Status(201, _saved(request, PriceForm.from_json(body.model_dump())))


@router.get("/model-prices/{int:price_id}", response=PriceOut)
def read_price(request: HttpRequest, price_id: int) -> JsonObject:
    return _price(load_price(caller(request), price_id, May.VIEW))


@router.patch("/model-prices/{int:price_id}", response=PriceOut)
def update_price(request: HttpRequest, price_id: int, body: PriceChanges) -> JsonObject:
    row = load_price(caller(request), price_id)
    return _saved(request, PriceForm.from_json(body.given(), instance=row))


@router.delete("/model-prices/{int:price_id}", response={204: None})
def remove_price(request: HttpRequest, price_id: int) -> Status[None]:
    load_price(caller(request), price_id).delete()
    return Status(204, None)


def _saved(request: HttpRequest, form: PriceForm) -> JsonObject:
    if not form.is_valid():
        raise invalid_form(form)
    return _price(form.store(caller(request)))
