/**
 * An API that streams JSON objects as server-sent events: here the chat API of OpenAI.
 *
 * Change the request and `decode` to match another API.
 */

import { EndpointCodec, type EndpointCodecEndpoint, json, type Parts, textOf } from "veeksha";

/** Reads text, finish reason and usage, and nothing else. */
export class ChatStream extends EndpointCodec {
  endpoint(): EndpointCodecEndpoint {
    // A string that is a placeholder alone becomes its value; without one, the member is left out.
    // The path follows the target's address.
    const request = {
      model: "{{model}}",
      messages: "{{messages}}",
      max_tokens: "{{max_tokens}}",
      stream: true,
      stream_options: { include_usage: true },
    };
    return { path: "chat/completions", request, framing: "event-stream" };
  }

  decode(event: Uint8Array, parts: Parts): void {
    if (textOf(event) === "[DONE]") {
      parts.done();
      return;
    }
    const message = json(event);
    if (message.error) {
      parts.error(message.error.message);
      return;
    }
    for (const choice of message.choices) {
      const text = choice.delta.content;
      if (text) parts.content(text);
      else parts.role();
      if (choice.finish_reason) parts.finish(choice.finish_reason);
    }
    const usage = message.usage;
    if (usage) parts.usage({ prompt: usage.prompt_tokens, completion: usage.completion_tokens });
  }
}
