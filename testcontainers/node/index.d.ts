/** Where the server's resources are, unless flags say otherwise. */
export declare const region: string;
export declare const account: string;

/** Describes a container that is to be started. */
export declare class GodwitContainer {
  /** @param image whose command is godwit's, as that of deploy/Dockerfile; without one see withBinary */
  constructor(image?: string);
  /** Builds the image, of a godwit for Linux and nothing else. */
  withBinary(path: string): this;
  /** Adds flags of godwit dev, such as "--enforce". */
  withFlags(...flags: string[]): this;
  /** Has the server's time stand still until advance. */
  withVirtualClock(): this;
  /** Starts it, and waits until the server is ready. Messages are in memory. */
  start(): Promise<StartedGodwitContainer>;
}

/** A server that runs. */
export declare class StartedGodwitContainer {
  /** Where it answers, for the machine that the test runs on. */
  readonly url: string;
  /** For the SDK's clients. */
  readonly config: {
    region: string;
    endpoint: string;
    credentials: { accessKeyId: string; secretAccessKey: string };
  };
  /** Moves the clock, from timer to timer, as "1d12h", and waits until all that came due was done. */
  advance(duration: string): Promise<void>;
  /** Makes a resource fail, by ARN, or for all of a service with * as its name. */
  fault(arn: string, fault: "unavailable" | "throttled" | "internal" | "denied" | "none"): Promise<void>;
  /** Deletes what there is. */
  reset(): Promise<void>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
