// The shapes of the operator API that the console shows. A member that a server does not
// send is shown as unknown: pages must not fall over it.

export interface Server {
  version: string;
  mode: string;
  clock: string;
  now: string;
  startedAt: string;
  region: string;
  account: string;
  enforced: boolean;
  endpoint: string;
}

export interface Attention {
  kind: string;
  severity: string;
  arn?: string;
  text: string;
  since?: string | null;
}

export interface Overview {
  server: Server;
  counts: Record<string, number>;
  messages: { visible: number; inFlight: number; delayed: number };
  owed: { due: number; waiting: number; inFlight: number };
  rates: Record<string, number> | null;
  worst: { arn: string; kind: string; name: string; messages: number; oldestAgeSeconds: number | null }[];
  attention: Attention[];
  asOf: string;
}

export interface Queue {
  arn: string;
  name: string;
  region: string;
  account: string;
  fifo: boolean;
  encrypted: boolean;
  createdAt: string;
  visible: number;
  inFlight: number;
  delayed: number;
  messages: number;
  oldestAgeSeconds: number | null;
  rates?: { sent: number; received: number; deleted: number } | null;
  problem?: string | null;
  deadLetterQueue: string | null;
  maxReceiveCount: number | null;
  deadLetterSources: number;
  takesDeadLetters: boolean;
}

export interface QueueDetail extends Queue {
  attributes?: Record<string, string>;
  tags?: Record<string, string>;
  policy?: string | null;
  totals?: Record<string, number>;
  sources?: string[];
  undelivered?: string[];
  subscriptions?: string[];
  mappings?: { id: string; function: string; state: string }[];
}

export interface Topic {
  arn: string;
  name: string;
  fifo: boolean;
  displayName?: string;
  subscriptions: number;
  pending: number;
  owed: number;
  rates?: { published: number } | null;
}

export interface TopicDetail extends Topic {
  attributes?: Record<string, string>;
  tags?: Record<string, string>;
  policy?: string | null;
  deliveryPolicy?: string | null;
  protocols?: Record<string, number>;
}

export interface Attempt {
  at: string;
  outcome: string;
  status: number;
  latencyMs: number;
  detail?: string;
}

export interface Subscription {
  arn: string;
  id?: string;
  topic: string;
  protocol: string;
  endpoint: string;
  endpointArn?: string | null;
  owner?: string;
  state: string;
  pausedAt: string | null;
  createdAt?: string;
  owed: number;
  due: number;
  waiting: number;
  inFlight: number;
  oldestPublishedAt: string | null;
  oldestAgeSeconds: number | null;
  deadLetterQueue: string | null;
  filtered?: boolean;
  raw?: boolean;
  lastAttempt: Attempt | null;
}

export interface EffectivePolicy {
  numRetries: number;
  numNoDelayRetries: number;
  numMinDelayRetries: number;
  numMaxDelayRetries: number;
  minDelaySeconds: number;
  maxDelaySeconds: number;
  backoffFunction: string;
}

export interface SubscriptionDetail extends Subscription {
  attributes?: Record<string, string>;
  filterPolicy?: string | null;
  filterPolicyScope?: string;
  deliveryPolicy?: string | null;
  effectivePolicy?: EffectivePolicy | null;
  throttlePerSecond?: number | null;
  redrivePolicy?: string | null;
}

export interface Delivery {
  id: string;
  messageId: string;
  state: string;
  attempt: number;
  nextAttemptAt: string | null;
  publishedAt: string | null;
  finishedAt: string | null;
  reason?: string;
  attempts: Attempt[];
}

export interface Ahead {
  attempt: number;
  at: string;
  phase: string;
  delaySeconds: number;
}

export interface Schedule {
  made: number;
  retriesTotal: number;
  endsAt: string | null;
  expiresAt: string | null;
  ahead: Ahead[];
  aheadTotal: number;
}

export interface DeliveryDetail extends Delivery {
  topic?: string;
  sizeBytes?: number;
  schedule?: Schedule | null;
}

export interface Attribute {
  name: string;
  type: string;
  value: string;
  encoding?: string;
}

export interface Message {
  position: string;
  messageId: string;
  sentAt: string;
  state: string;
  availableAt: string | null;
  receives: number;
  firstReceivedAt?: string | null;
  group?: string | null;
  deduplicationId?: string | null;
  sequenceNumber?: string | null;
  sender?: string;
  sizeBytes: number;
  encrypted?: boolean;
  refused?: string | null;
  body: string;
  bodyEncoding: string;
  bodyTruncated?: boolean;
  attributes?: Attribute[] | null;
  deadLetter?: { from?: string; kind?: string; cause?: string; attempts?: number | null } | null;
}

export interface DeadGroup {
  from: string;
  kind: string;
  cause: string;
  count: number;
  oldestAt: string | null;
  newestAt: string | null;
  position: string;
}

export interface Redrive {
  id: string;
  queue: string;
  to: string | null;
  perSecond: number | null;
  state: string;
  done: number;
  total: number;
  startedAt: string;
  error: string | null;
}

export interface MessagePage {
  messages: Message[];
  scanned: number;
  total: number;
  unreadable: number;
  next: string | null;
}

export interface Plan {
  valid: boolean;
  error: string | null;
  policy: (EffectivePolicy & { totalSeconds: number }) | null;
  maxPerSecond: number | null;
  phases: { name: string; retries: number; fromSeconds: number; untilSeconds: number; shortestDelaySeconds: number; longestDelaySeconds: number }[] | null;
  steps: { retry: number; count: number; phase: string; delaySeconds: number; fromSeconds: number; untilSeconds: number }[] | null;
  backlog: { owed: number; attempts: number; secondsAtMax: number | null } | null;
}

export interface Fn {
  arn: string;
  name: string;
  runtime: string;
  state: string;
  memoryMB: number;
  timeoutSeconds: number;
  modifiedAt: string;
  reserved: number | null;
  events: number;
  due: number;
  waiting: number;
  inFlight: number;
  oldestAgeSeconds?: number | null;
  mappings: number;
}

export interface Topology {
  nodes: { arn: string; kind: string; name: string; messages: number | null }[];
  edges: { from: string; to: string; kind: string; arn: string; state: string; rate: number | null; owed: number | null }[];
  truncated: boolean;
  asOf: string;
}

export type JobKind = "retry" | "drop" | "redrive" | "delete";

export interface Job {
  id: string;
  kind: JobKind;
  arn: string;
  to: string | null;
  where: { search: string; cause: string; from: string; ids: number; since: string | null; until: string | null };
  perSecond: number | null;
  state: string;
  by: string | null;
  createdAt: string;
  finishedAt: string | null;
  scanned: number;
  total: number;
  matched: number;
  done: number;
  skipped: number;
  error: string | null;
  etaSeconds: number | null;
}
