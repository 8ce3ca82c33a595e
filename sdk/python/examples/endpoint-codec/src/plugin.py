"""An API that streams JSON objects as server-sent events: here the chat API of OpenAI.

Change the request and `decode` to match another API.
"""

from veeksha import Endpoint, EndpointCodec, Framing, Parts, plugin
from veeksha.codec import json


@plugin
class ChatStream(EndpointCodec):
    """Reads text, finish reason and usage, and nothing else."""

    def endpoint(self) -> Endpoint:
        # A string that is a placeholder alone becomes its value; without one, the member is left
        # out. The path follows the target's address.
        request = {
            "model": "{{model}}",
            "messages": "{{messages}}",
            "max_tokens": "{{max_tokens}}",
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return Endpoint.of("chat/completions", request, Framing.EVENT_STREAM)

    def decode(self, event: bytes, parts: Parts) -> None:
        if event == b"[DONE]":
            parts.done()
            return
        message = json(event)
        if "error" in message:
            parts.error(message["error"]["message"])
            return
        for choice in message["choices"]:
            text = choice["delta"].get("content")
            if text:
                parts.content(text)
            else:
                parts.role()
            if choice.get("finish_reason"):
                parts.finish(choice["finish_reason"])
        usage = message.get("usage")
        if usage:
            parts.usage(usage["prompt_tokens"], usage["completion_tokens"])
