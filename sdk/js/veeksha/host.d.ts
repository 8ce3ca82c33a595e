/** The interfaces of the host. The engine passes numbers of 32 bits as signed ones. */

declare module "veeksha:plugin/log@0.2.0" {
  export function write(level: "debug" | "info" | "warn" | "error", message: string): void;
}

declare module "veeksha:plugin/random@0.2.0" {
  export function words(session: number, stream: string, first: number, count: number): number[];
}

declare module "veeksha:plugin/tokens@0.2.0" {
  export function count(text: string): number;
  export function encode(text: string): number[];
  export function vocabulary(): number;
}

declare module "veeksha:plugin/blobs@0.2.0" {
  export class Blob {
    static open(name: string): Blob;
    size(): number;
    read(offset: number, len: number): ArrayLike<number>;
  }
}

/** What the engine has of the web's console. */
declare const console: Record<
  "debug" | "log" | "info" | "warn" | "error",
  (...values: unknown[]) => void
>;
