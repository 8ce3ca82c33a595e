/** Finished requests, as metrics and checks receive them. */

import { lift } from "./convert";
import type {
  Batch,
  FailedRequest,
  NewConnection,
  ReplayedRequest,
  Status,
  Trigger,
  Usage,
} from "./contract";

export type { Status } from "./contract";

/** The content of a chunk of an answer; `other` is one that this package does not know yet. */
export type ChunkKind = "reasoning" | "content" | "tool" | "other";

/** The absent value in columns of 32 bits, and in columns of times. */
const NONE = 0xffff_ffff;
const NEVER = Number.MAX_SAFE_INTEGER;
const KINDS: readonly ChunkKind[] = ["reasoning", "content", "tool"];
const TRIGGERS: readonly Trigger[] = ["dispatched", "first-chunk", "completed"];
/** The further columns that contain texts. */
const TEXTS = new Set(["response_id", "trace_id"]);

function unless(absent: number, value: number): number | null {
  return value === absent ? null : value;
}

/**
 * One finished request. It has observations, nothing derived.
 *
 * Times are nanoseconds since the start of the run. What does not exist is null, never 0. Values
 * are read from the columns of the batch when they are asked for.
 */
export class Completion {
  constructor(
    private readonly batch: Batch,
    private readonly place: number,
  ) {}

  private part<T>(values: ArrayLike<T>, ends: number[]): T[] {
    const begin = this.place > 0 ? ends[this.place - 1]! : 0;
    return Array.prototype.slice.call(values, begin, ends[this.place]!);
  }

  private entry<T extends { request: number }>(entries: T[]): T | undefined {
    return entries.find((entry) => entry.request === this.place);
  }

  /** The session that it belongs to. */
  get session(): number {
    return this.batch.session[this.place]!;
  }

  /** Its node in the session. */
  get node(): number {
    return this.batch.node[this.place]!;
  }

  /** Requests of its session that were known when it finished. */
  get sessionRequests(): number {
    return this.batch.sessionRequests[this.place]!;
  }

  /** The nodes that it waited for. */
  get parents(): number[] {
    return this.part(this.batch.parents, this.batch.parentsEnd);
  }

  /** The awaited event of each parent; a number for one that this package does not know yet. */
  get parentTriggers(): (Trigger | number)[] {
    return this.part(this.batch.parentTriggers, this.batch.parentsEnd).map(
      (number) => TRIGGERS[number] ?? number,
    );
  }

  /** The time after the event of each parent. */
  get parentDelays(): number[] {
    return this.part(this.batch.parentDelays, this.batch.parentsEnd);
  }

  /** The node whose conversation it continued. */
  get historyParent(): number | null {
    return unless(NONE, this.batch.historyParent[this.place]!);
  }

  /** Its think time. */
  get waitAfterReady(): number {
    return this.batch.waitAfterReady[this.place]!;
  }

  /** The instant that the schedule asked for. */
  get intendedAt(): number {
    return this.batch.intendedAt[this.place]!;
  }

  /** The time for which concurrency limits delayed it after that. */
  get held(): number {
    return this.batch.held[this.place]!;
  }

  /** The hand-over to a client thread. */
  get dispatchedAt(): number {
    return this.batch.dispatchedAt[this.place]!;
  }

  /** The pick-up by a client thread. */
  get pickedUpAt(): number | null {
    return unless(NEVER, this.batch.pickedUpAt[this.place]!);
  }

  /** The write of its last byte to the socket. */
  get sentAt(): number | null {
    return unless(NEVER, this.batch.sentAt[this.place]!);
  }

  /** The arrival of the first byte of the answer. */
  get firstByteAt(): number | null {
    return unless(NEVER, this.batch.firstByteAt[this.place]!);
  }

  /** Its completion. */
  get completedAt(): number {
    return this.batch.completedAt[this.place]!;
  }

  /** True unless it was dispatched after the end of the measured time. */
  get measured(): boolean {
    return this.batch.measured[this.place]!;
  }

  get status(): Status {
    return this.batch.status[this.place]!;
  }

  /** True if it was answered. */
  get isOk(): boolean {
    return this.status === "ok";
  }

  /** The reason of a failure: its code and its message. */
  get failure(): FailedRequest | null {
    return this.entry(this.batch.failures) ?? null;
  }

  /** The reason why generation ended, as sent by the server. */
  get finishReason(): string | null {
    const place = this.batch.finishReason[this.place]!;
    return place === NONE ? null : this.batch.texts[place]!;
  }

  get httpStatus(): number | null {
    return unless(NONE, this.batch.httpStatus[this.place]!);
  }

  /** The arrival of each chunk with generated content. */
  get chunkAt(): number[] {
    return this.part(this.batch.chunkAt, this.batch.chunksEnd);
  }

  /** Tokens in each of these chunks; null where that is not known. */
  get chunkTokens(): number[] | null {
    return this.batch.chunkTokensKnown[this.place]
      ? this.part(this.batch.chunkTokens, this.batch.chunksEnd)
      : null;
  }

  /** The content of each of these chunks. */
  get chunkKinds(): ChunkKind[] {
    return this.part(this.batch.chunkKinds, this.batch.chunksEnd).map(
      (kind) => KINDS[kind] ?? "other",
    );
  }

  /** Tokens of the new messages, as specified by the workload. */
  get targetPromptTokens(): number {
    return this.batch.targetPromptTokens[this.place]!;
  }

  /** Tokens of the new messages. */
  get promptTokens(): number {
    return this.batch.promptTokens[this.place]!;
  }

  /** Tokens of history, new messages and chat template. */
  get totalPromptTokens(): number {
    return this.batch.totalPromptTokens[this.place]!;
  }

  /** Tokens that the chat template added. */
  get templateTokens(): number {
    return this.batch.templateTokens[this.place]!;
  }

  /** Tokens that the workload requested. */
  get targetOutputTokens(): number | null {
    return unless(NONE, this.batch.targetOutputTokens[this.place]!);
  }

  /** Tokens generated; 0 without an answer. */
  get outputTokens(): number {
    return this.batch.outputTokens[this.place]!;
  }

  /** True if `outputTokens` is the server's count. */
  get outputTokensFromUsage(): boolean {
    return this.batch.outputTokensFromUsage[this.place]!;
  }

  /** The server's counts. */
  get usage(): Usage | null {
    const { usagePrompt, usageCompletion, usageCached, usageReasoning } = this.batch;
    const prompt = unless(NONE, usagePrompt[this.place]!);
    if (prompt === null) return null;
    const cached = unless(NONE, usageCached[this.place]!);
    return {
      prompt,
      completion: usageCompletion[this.place]!,
      cached,
      reasoning: unless(NONE, usageReasoning[this.place]!),
    };
  }

  /** Prompt tokens that an unbounded prefix cache would have held. */
  get idealCachedTokens(): number | null {
    return unless(NONE, this.batch.idealCachedTokens[this.place]!);
  }

  /** True if the connection had been used by an earlier request. */
  get connectionReused(): boolean {
    return this.batch.connectionReused[this.place]!;
  }

  /** The times of a new connection. */
  get connection(): NewConnection | null {
    return this.entry(this.batch.connections) ?? null;
  }

  /** True if it was sent again on a new connection. */
  get retried(): boolean {
    return this.batch.retried[this.place]!;
  }

  /** The index of its server among the targets, in the order of the configuration. */
  get server(): number {
    return this.batch.server[this.place]!;
  }

  /** The recording, if it was replayed from a trace. */
  get recorded(): ReplayedRequest | null {
    return this.entry(this.batch.replays) ?? null;
  }

  /** The labels of the request and its session; of several with one name, the last one. */
  get labels(): Record<string, string> {
    const { texts, labelNames, labelValues, labelsEnd } = this.batch;
    const names = this.part(labelNames, labelsEnd);
    const values = this.part(labelValues, labelsEnd);
    return Object.fromEntries(names.map((name, i) => [texts[name]!, texts[values[i]!]!]));
  }

  /** Fields that are not members of this class, by their name in the host's documentation. */
  get further(): Record<string, number | string> {
    const found: Record<string, number | string> = {};
    for (const { name, values } of this.batch.further) {
      const value = values[this.place]!;
      if (!Number.isNaN(value)) found[name] = TEXTS.has(name) ? this.batch.texts[value]! : value;
    }
    return found;
  }
}

const liftBatch = lift<Batch>("Batch");

/** Returns the requests of a batch, in order. */
export function completions(batch: Batch): Completion[] {
  const lifted = liftBatch(batch);
  return Array.from(lifted.session, (_, place) => new Completion(lifted, place));
}
