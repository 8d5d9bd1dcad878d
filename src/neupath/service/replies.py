"""Replies: content as JSON in the spelling of the command line."""

import json

from starlette.responses import Response


def to_reply(content: object, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(json.dumps(content, ensure_ascii=False), status, media_type="application/json")
