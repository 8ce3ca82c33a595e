/** Chats recorded by a gateway: one row for each turn. */

import {
  type Group,
  type Layout,
  type Loose,
  milliseconds,
  PluginError,
  Request,
  type Row,
  seedOf,
  Session,
  synthetic,
  type Trace,
  TraceFlavor,
  type NoConfig,
} from "veeksha";

/** The fields of a row: the columns of the layout. */
interface Turn {
  chat: string;
  time: number;
  input_tokens: number;
  output_tokens: number;
  latency_ms?: number;
}

/** Rows with the same `chat` are the turns of one session. */
export class GatewayLog extends TraceFlavor<NoConfig, Turn> {
  layout(): Loose<Layout> {
    return {
      columns: [
        { name: "chat", aliases: ["chat_id"], cell: "text", required: true },
        { name: "time", cell: "number", required: true },
        { name: "input_tokens", cell: "count", required: true },
        { name: "output_tokens", cell: "count", required: true },
        { name: "latency_ms", cell: "number" },
      ],
      grouping: { tag: "column", val: "chat" },
      arrival: { column: "time", unit: "seconds" },
    };
  }

  session(_trace: Trace<Turn>, epoch: number, group: Group<Turn>): Session {
    const requests = group.rows.map((row, node) => this.request(epoch, row, node));
    return new Session(...requests).arrives(group.rows[0]!.at);
  }

  private request(epoch: number, row: Row<Turn>, node: number): Request {
    const turn = row.fields;
    if (turn.input_tokens === 0) {
      throw new PluginError("row", `row ${row.number}: \`input_tokens\` is 0`);
    }
    // The epoch is in the seed: a wrapped trace does not repeat its text.
    const text = synthetic(seedOf("gateway_log", [epoch, row.number]), turn.input_tokens);
    const request = new Request(node).user(text).outputExactly(turn.output_tokens);
    if (node > 0) request.history(node - 1);
    const latency = turn.latency_ms == null ? null : milliseconds(turn.latency_ms);
    return request.recorded({ at: row.at, latency, outputTokens: turn.output_tokens });
  }
}
