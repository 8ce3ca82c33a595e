/** Errors of a plugin. */

/** The members of an error besides its code and message. */
export interface ErrorDetails {
  /** The fix. */
  hint?: string;
  /** The place in the configuration, as a JSON pointer: `/turns/0`. */
  path?: string;
}

/** An error that the host reports with its code, message, hint and path. */
export class PluginError extends Error {
  readonly code: string;
  readonly hint: string | null;
  readonly path: string | null;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message);
    this.name = "PluginError";
    this.code = code;
    this.hint = details.hint ?? null;
    this.path = details.path ?? null;
  }

  /** Returns an error of the configuration at a JSON pointer. */
  static config(path: string, message: string, hint?: string): PluginError {
    return new PluginError("config", message, {
      path,
      ...(hint === undefined ? {} : { hint }),
    });
  }
}

/** A plugin asked for something that the sandbox does not have. */
export class SandboxError extends PluginError {
  constructor(message: string, hint: string) {
    super("sandbox", message, { hint });
    this.name = "SandboxError";
  }
}
