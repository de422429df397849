// Godwit in a container, for tests: of an image that you have, or of one that is built of the
// binary alone.
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GenericContainer, Wait } from "testcontainers";

const port = 4566;

/** Where the server's resources are, unless flags say otherwise. */
export const region = "us-east-1";
export const account = "000000000000";

// An image without a base.
const dockerfile = 'FROM scratch\nCOPY --chmod=755 godwit /godwit\nENTRYPOINT ["/godwit"]\n';

async function build(binary) {
  const context = await mkdtemp(join(tmpdir(), "godwit-image-"));
  try {
    await writeFile(join(context, "Dockerfile"), dockerfile);
    await copyFile(binary, join(context, "godwit"));
    return await GenericContainer.fromDockerfile(context).build();
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

/** Describes a container that is to be started. */
export class GodwitContainer {
  #image;
  #binary;
  #flags = [];

  /** @param image whose command is godwit's, as that of deploy/Dockerfile; see withBinary */
  constructor(image) {
    this.#image = image;
  }

  /** Builds the image, of a godwit for Linux and nothing else. */
  withBinary(path) {
    this.#binary = path;
    return this;
  }

  /** Adds flags of godwit dev, such as "--enforce". */
  withFlags(...flags) {
    this.#flags.push(...flags);
    return this;
  }

  /** Has the server's time stand still until advance. */
  withVirtualClock() {
    return this.withFlags("--clock", "virtual", "--jitter", "0");
  }

  /** Starts it, and waits until the server is ready. Messages are in memory. */
  async start() {
    if (!this.#image && !this.#binary) {
      throw new Error("name an image, or a binary of which to build one (withBinary)");
    }
    const container = this.#binary ? await build(this.#binary) : new GenericContainer(this.#image);
    return new StartedGodwitContainer(
      await container
        .withExposedPorts(port)
        .withEnvironment({ GODWIT_LISTEN: `0.0.0.0:${port}`, GODWIT_STORE: "memory" })
        .withCommand(["dev", ...this.#flags])
        .withWaitStrategy(Wait.forHttp("/_godwit/ready", port))
        .withStartupTimeout(60_000)
        .start(),
    );
  }
}

/** A server that runs. */
export class StartedGodwitContainer {
  #container;

  constructor(container) {
    this.#container = container;
  }

  /** Where it answers, for the machine that the test runs on. */
  get url() {
    return `http://${this.#container.getHost()}:${this.#container.getMappedPort(port)}`;
  }

  /** For the SDK's clients. */
  get config() {
    return { region, endpoint: this.url, credentials: { accessKeyId: "test", secretAccessKey: "test" } };
  }

  /** Moves the clock, from timer to timer, as "1d12h", and waits until all that came due was done. */
  async advance(duration) {
    await this.#post("clock", { advance: duration });
  }

  /** Makes a resource fail: unavailable, throttled, or none to end that. */
  async fault(arn, fault) {
    await this.#post("faults", { arn, fault });
  }

  /** Deletes what there is. */
  async reset() {
    await this.#post("reset", { account });
  }

  async stop() {
    await this.#container.stop();
  }

  async [Symbol.asyncDispose]() {
    await this.stop();
  }

  async #post(what, body) {
    const answer = await fetch(`${this.url}/_godwit/v1/${what}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) {
      const said = await answer.json().catch(() => ({}));
      throw new Error(said.error ?? `${answer.status} ${answer.statusText}`);
    }
    await answer.arrayBuffer();
  }
}
