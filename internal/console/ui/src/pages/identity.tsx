import { h, Fragment } from "preact";
import { useData } from "../api";
import { A, Empty, Filter, Page, Pager, Section, Shown, State, Table } from "../components";
import { place } from "../router";
import { Safe, span, Time } from "../text";

interface User {
  name: string;
  arn: string;
  createdAt: string;
  groups: string[];
  policies: string[];
  boundary: string | null;
  keys: { id: string; active: boolean; createdAt: string; lastUsedAt: string | null; lastUsedService: string | null }[];
}

interface Role {
  name: string;
  arn: string;
  description: string;
  createdAt: string;
  policies: string[];
  boundary: string | null;
  maxSessionSeconds: number;
  trustsOthers: boolean;
  lastUsedAt: string | null;
}

// Policies are names or ARNs of policies.
function Policies({ of, boundary }: { of: string[] | null; boundary: string | null }) {
  if (!of?.length && !boundary) return <>none</>;
  return (
    <ul class="plain">
      {(of ?? []).map((p) => <li key={p}><Safe text={p.startsWith("arn:") ? p.replace(/^.*:policy\//, "") : p} /></li>)}
      {boundary ? <li>within <Safe text={boundary.replace(/^.*:policy\//, "")} /></li> : null}
    </ul>
  );
}

// find is the name that an ARN of a user or role ends with: links lead here by ARN.
const find = (arn: string | undefined) => arn?.split("/").pop();

export function IdentityPage() {
  const p = place.value.params;
  const search = p.search || find(p.arn);
  const users = useData<{ users: User[]; next: string | null }>("users", { search, cursor: p.users, limit: 100 }, 15_000);
  const roles = useData<{ roles: Role[]; next: string | null }>("roles", { search, cursor: p.roles, limit: 100 }, 15_000);
  return (
    <Page title="Identity">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}><Filter name="search" label="Name contains" pagers={["users", "roles"]} /></form>
      {p.arn && !p.search ? <p class="hint">Those like <Safe text={find(p.arn)} />. <A page="identity">Show all.</A></p> : null}
      <Section title="Users">
        <Shown of={users}>
          {(data) => data.users?.length ? (
            <>
              <Table caption="Users" rows={data.users} keyOf={(u) => u.arn} columns={[
                { name: "user", cell: (u) => <span title={u.arn}><Safe text={u.name} /></span> },
                { name: "policies", cell: (u) => <Policies of={u.policies} boundary={u.boundary} /> },
                { name: "groups", cell: (u) => <Safe text={u.groups?.join(", ") || "none"} /> },
                { name: "access keys", cell: (u) => u.keys?.length ? (
                  <ul class="plain">
                    {u.keys.map((k) => <li key={k.id}><code><Safe text={k.id} /></code> <State of={k.active ? "active" : "inactive"} /> <span class="hint">{k.lastUsedAt ? <>used <Time at={k.lastUsedAt} />{k.lastUsedService ? <> for <Safe text={k.lastUsedService} /></> : null}</> : "never used"}</span></li>)}
                  </ul>
                ) : "none" },
                { name: "since", cell: (u) => <Time at={u.createdAt} /> },
              ]} />
              <Pager next={data.next} name="users" />
            </>
          ) : <Empty>{search ? <p>No user is called like that. <A page="identity">Show all.</A></p> : <p>There are no users: everything is done as the root user. Make one with <code>aws iam create-user --user-name ann</code>.</p>}</Empty>}
        </Shown>
      </Section>
      <Section title="Roles">
        <Shown of={roles}>
          {(data) => data.roles?.length ? (
            <>
              <Table caption="Roles" rows={data.roles} keyOf={(r) => r.arn} columns={[
                { name: "role", cell: (r) => <span title={r.arn}><Safe text={r.name} />{r.description ? <span class="hint"> <Safe text={r.description} max={200} /></span> : null}</span> },
                { name: "policies", cell: (r) => <Policies of={r.policies} boundary={r.boundary} /> },
                { name: "assumed by", cell: (r) => (r.trustsOthers ? "others, too" : "services only") },
                { name: "for", number: true, cell: (r) => span(r.maxSessionSeconds) },
                { name: "last used", cell: (r) => <Time at={r.lastUsedAt} /> },
              ]} />
              <Pager next={data.next} name="roles" />
            </>
          ) : <Empty>{search ? <p>No role is called like that.</p> : <p>There are no roles. Functions and delivery streams act by roles: <code>aws iam create-role</code>.</p>}</Empty>}
        </Shown>
      </Section>
    </Page>
  );
}
