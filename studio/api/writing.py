"""What answers are written as: JSON with times that can be sent back and compared."""

from datetime import UTC, datetime
from typing import Any

from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder


class Encoder(NinjaJSONEncoder):
    def default(self, o: Any) -> Any:
        if isinstance(o, datetime):
            # Django's encoder cuts microseconds off, and who sends `updated_at` back would never be right.
            return o.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return super().default(o)


class Renderer(JSONRenderer):
    encoder_class = Encoder
    json_dumps_params = {"ensure_ascii": False, "allow_nan": False}
