"""The API of a server that answers with a line of JSON for each word."""

from dataclasses import dataclass
from typing import Annotated

from veeksha import Endpoint, EndpointCodec, Framing, Parts, plugin
from veeksha.codec import json


@dataclass
class Config:
    """The version of the API."""

    version: Annotated[str, "The header `x-api-version` of each request."] = "2"


@plugin
class WordLines(EndpointCodec[Config]):
    """Requests are a JSON object, answers lines such as `{"word": "Hello"}`."""

    def endpoint(self) -> Endpoint:
        request = {
            "model": "{{model}}",
            "messages": "{{messages}}",
            # A member whose placeholder has no value is left out.
            "limit": "{{max_tokens}}",
        }
        headers = {"x-api-version": self.config.version}
        return Endpoint.of("v2/speak", request, Framing.LINES, headers)

    def decode(self, event: bytes, parts: Parts) -> None:
        line = json(event)
        if "failed" in line:
            parts.error(line["failed"])
        if line.get("word"):
            parts.content(line["word"])
        if "tokens" in line:
            parts.usage(line["tokens"]["prompt"], line["tokens"]["answer"])
        if "ended" in line:
            parts.finish(line["ended"])
            parts.done()
