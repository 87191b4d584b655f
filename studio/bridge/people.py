"""Customers → what tools may read of them."""

from engine.tools.views import CustomerView
from studio.models import Customer


def customer_view(row: Customer | None) -> CustomerView | None:
    """None for nobody."""
    if row is None:
        return None
    return CustomerView.of(id=row.uid, name=row.name, variables=row.variables)
