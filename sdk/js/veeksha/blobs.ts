/** Files that the scenario grants. A plugin that imports this module asks for `blobs`. */

import { Blob as HostBlob } from "veeksha:plugin/blobs@0.2.0";

import { ofHost } from "./report";

/** A granted file. */
export class Blob {
  private readonly file: HostBlob;

  /** Opens a file by the name under which the scenario grants it. */
  constructor(name: string) {
    this.file = ofHost(() => HostBlob.open(name));
  }

  /** Its size in bytes. */
  get size(): number {
    return Number(this.file.size());
  }

  /** Returns at most `length` bytes from a position. */
  read(offset: number, length: number): Uint8Array {
    return Uint8Array.from(ofHost(() => this.file.read(offset, length)));
  }

  /** Returns all bytes. */
  bytes(): Uint8Array {
    return this.read(0, this.size);
  }
}
