// Package simulate answers the policy simulator's operations of IAM.
package simulate

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/identity"
)

// ContextEntry is a condition key of a simulated request, with its values.
type ContextEntry struct {
	ContextKeyName   *string
	ContextKeyValues []string
	ContextKeyType   *string
}

// SimulateCustomPolicyInput is the request of SimulateCustomPolicy.
type SimulateCustomPolicyInput struct {
	PolicyInputList                    []string `wire:"required"`
	PermissionsBoundaryPolicyInputList []string
	ActionNames                        []string `wire:"required"`
	ResourceArns                       []string
	ResourcePolicy                     *string
	ResourceOwner                      *string
	CallerArn                          *string
	ContextEntries                     []ContextEntry
	ResourceHandlingOption             *string
	MaxItems                           *int
	Marker                             *string
}

// SimulatePrincipalPolicyInput is the request of SimulatePrincipalPolicy.
type SimulatePrincipalPolicyInput struct {
	PolicySourceArn                    *string `wire:"required"`
	PolicyInputList                    []string
	PermissionsBoundaryPolicyInputList []string
	ActionNames                        []string `wire:"required"`
	ResourceArns                       []string
	ResourcePolicy                     *string
	ResourceOwner                      *string
	CallerArn                          *string
	ContextEntries                     []ContextEntry
	ResourceHandlingOption             *string
	MaxItems                           *int
	Marker                             *string
}

// SimulationOutput is the answer of both.
type SimulationOutput struct {
	EvaluationResults []EvaluationResult
	IsTruncated       bool
	Marker            string
}

// EvaluationResult is the decision on an action on a resource.
type EvaluationResult struct {
	EvalActionName, EvalResourceName, EvalDecision string
	MatchedStatements                              []MatchedStatement
	MissingContextValues                           []string
	PermissionsBoundaryDecisionDetail              *BoundaryDecision
	EvalDecisionDetails                            map[string]string
}

// BoundaryDecision is the decision of the permissions boundary.
type BoundaryDecision struct{ AllowedByPermissionsBoundary bool }

// MatchedStatement is a statement that applies.
type MatchedStatement struct {
	SourcePolicyId, SourcePolicyType string
	StartPosition, EndPosition       *Position
}

// Position is a position in a document, from 1.
type Position struct{ Line, Column int }

// ContextKeysInput is the request of GetContextKeysForCustomPolicy.
type ContextKeysInput struct {
	PolicyInputList []string `wire:"required"`
}

// PrincipalContextKeysInput is the request of GetContextKeysForPrincipalPolicy.
type PrincipalContextKeysInput struct {
	PolicySourceArn *string `wire:"required"`
	PolicyInputList []string
}

// ContextKeysOutput is the answer of both.
type ContextKeysOutput struct{ ContextKeyNames []string }

// Engine has the identities.
type Engine interface {
	Read(account string, look func(a *iam.Account) error) error
}

// Service answers the operations.
type Service struct{ engine Engine }

// New makes a Service.
func New(engine Engine) *Service { return &Service{engine} }

// Operations are the operations that are implemented.
func (s *Service) Operations() []api.Operation {
	return []api.Operation{
		api.Op("SimulateCustomPolicy", s.simulateCustomPolicy),
		api.Op("SimulatePrincipalPolicy", s.simulatePrincipalPolicy),
		api.Op("GetContextKeysForCustomPolicy", s.getContextKeysForCustomPolicy),
		api.Op("GetContextKeysForPrincipalPolicy", s.getContextKeysForPrincipalPolicy),
	}
}

// simulated is a policy of a simulation.
type simulated struct {
	id, kind string
	document string
	policy   *policy.Policy
	breaks   []int // where the document's lines end
}

// simulation has the policies and the context of a simulated request.
type simulation struct {
	identity, boundary, resource []simulated
	who                          caller.Caller
	owner                        string
	context                      entries

	all       []simulated // identity, boundary and resource
	missing   []string    // keys of the policies that context does not have
	documents int         // bytes of all policies
	values    int         // bytes of what context has
}

// entries are the condition keys of a simulated request; names are in lower case.
type entries map[string][]string

// Values implements policy.Context.
func (e entries) Values(key string) []string { return e[key] }

func readSimulated(id, kind, document string, parse func(string) (*policy.Policy, error)) (simulated, error) {
	p, err := parse(document)
	if err != nil {
		return simulated{}, fault.New(fault.InvalidInput, "Invalid Input "+id+": Syntax errors in policy.")
	}
	read := simulated{id: id, kind: kind, document: document, policy: p}
	for i := range len(document) {
		if document[i] == '\n' {
			read.breaks = append(read.breaks, i)
		}
	}
	return read, nil
}

const (
	ofRequest  = "none" // a policy of the request
	ofResource = "resource"
)

// add parses the policies of a request.
func (sim *simulation) add(in *SimulateCustomPolicyInput) error {
	for i, document := range in.PolicyInputList {
		p, err := readSimulated("PolicyInputList."+strconv.Itoa(i+1), ofRequest, document, policy.ParseIdentity)
		if err != nil {
			return err
		}
		sim.identity = append(sim.identity, p)
	}
	if len(in.PermissionsBoundaryPolicyInputList) > 1 {
		return fault.New(fault.InvalidInput, "Only one permissions boundary can be simulated.")
	}
	if len(in.PermissionsBoundaryPolicyInputList) > 0 {
		sim.boundary = nil // in place of the principal's boundary
	}
	for i, document := range in.PermissionsBoundaryPolicyInputList {
		p, err := readSimulated("PermissionsBoundaryPolicyInputList."+strconv.Itoa(i+1), ofRequest, document, policy.ParseIdentity)
		if err != nil {
			return err
		}
		sim.boundary = append(sim.boundary, p)
	}
	if in.ResourcePolicy != nil {
		if _, kind, _, ok := iam.ParseARN(sim.who.ARN); in.CallerArn == nil && (!ok || kind != iam.User) {
			return fault.New(fault.InvalidInput, "CallerArn is required when ResourcePolicy is given.") // only a user calls by itself
		}
		p, err := readSimulated("ResourcePolicy", ofResource, *in.ResourcePolicy, policy.ParseLoose)
		if err != nil {
			return err
		}
		sim.resource = append(sim.resource, p)
	}
	for _, e := range in.ContextEntries {
		sim.context[strings.ToLower(api.Deref(e.ContextKeyName))] = e.ContextKeyValues
	}
	return nil
}

// callerOfARN is the caller with an ARN, as far as the ARN identifies it.
func callerOfARN(call *api.Call, arn string) caller.Caller {
	account, kind, name, ok := iam.ParseARN(arn)
	switch {
	case ok && kind == iam.Role:
		return caller.Caller{Kind: caller.Session, Account: account, ARN: identity.RoleSessionARN(account, name, "simulation"), Role: arn}
	case ok:
		return caller.Caller{Kind: caller.User, Account: account, ARN: arn, Name: name}
	case strings.HasSuffix(arn, ":root"):
		return caller.Caller{Kind: caller.Root, Account: call.Account, ARN: arn, ID: call.Account}
	default:
		return caller.Caller{Kind: caller.User, Account: call.Account, ARN: arn}
	}
}

func (s *Service) simulateCustomPolicy(ctx context.Context, call *api.Call, in *SimulateCustomPolicyInput) (*SimulationOutput, error) {
	sim := &simulation{context: entries{}, who: caller.Caller{Kind: caller.User, Account: call.Account}}
	return sim.run(ctx, call, in)
}

func (s *Service) simulatePrincipalPolicy(ctx context.Context, call *api.Call, in *SimulatePrincipalPolicyInput) (*SimulationOutput, error) {
	sim := &simulation{context: entries{}, who: callerOfARN(call, *in.PolicySourceArn)}
	sources, boundary, err := s.sourcesOf(call, *in.PolicySourceArn)
	if err != nil {
		return nil, err
	}
	for _, from := range sources {
		p, err := readSimulated(from.Name, from.Type, from.Document, policy.ParseIdentity)
		if err != nil {
			return nil, err
		}
		sim.identity = append(sim.identity, p)
	}
	if boundary != "" {
		p, err := readSimulated("PermissionsBoundary", ofRequest, boundary, policy.ParseIdentity)
		if err != nil {
			return nil, err
		}
		sim.boundary = append(sim.boundary, p)
	}
	custom := SimulateCustomPolicyInput{
		in.PolicyInputList, in.PermissionsBoundaryPolicyInputList, in.ActionNames, in.ResourceArns, in.ResourcePolicy, in.ResourceOwner, in.CallerArn,
		in.ContextEntries, in.ResourceHandlingOption, in.MaxItems, in.Marker,
	}
	return sim.run(ctx, call, &custom)
}

// sourcesOf are the policies of a user, group or role, and the document of its boundary.
func (s *Service) sourcesOf(call *api.Call, arn string) (sources []identity.PolicySource, boundary string, err error) {
	err = s.engine.Read(call.Account, func(a *iam.Account) error {
		e := a.ByARN(arn)
		if e == nil || e.Kind != iam.User && e.Kind != iam.Group && e.Kind != iam.Role {
			_, kind, name, ok := iam.ParseARN(arn)
			if !ok {
				return fault.New(fault.InvalidInput, "Invalid Entity Arn: "+arn+" does not clearly define entity type and name.")
			}
			if _, err := a.Find(kind, name); err != nil {
				return err
			}
			return fault.New(fault.NoSuchEntity, "The entity "+arn+" cannot be found.")
		}
		sources = identity.PolicySources(a, e)
		if e.Boundary != "" {
			if p, err := a.Managed(e.Boundary); err == nil {
				boundary = p.DefaultVersion().Document
			}
		}
		return nil
	})
	return sources, boundary, err
}

func (sim *simulation) run(ctx context.Context, call *api.Call, in *SimulateCustomPolicyInput) (*SimulationOutput, error) {
	if in.CallerArn != nil {
		sim.who = callerOfARN(call, *in.CallerArn)
	}
	if err := sim.add(in); err != nil {
		return nil, err
	}
	if in.ResourceOwner != nil {
		sim.owner = strings.TrimSuffix(strings.TrimPrefix(*in.ResourceOwner, "arn:aws:iam::"), ":root")
	}
	resources := in.ResourceArns
	if len(resources) == 0 {
		resources = []string{"*"}
	}
	for _, action := range in.ActionNames {
		if service, name, ok := strings.Cut(action, ":"); !ok || service == "" || name == "" {
			return nil, fault.New(fault.InvalidInput, "Invalid Action Name: "+action)
		}
	}
	sim.all = slices.Concat(sim.identity, sim.boundary, sim.resource)
	sim.missing = missingOf(sim.all, sim.context)
	for _, p := range sim.all {
		sim.documents += len(p.document)
	}
	for _, values := range sim.context {
		for _, value := range values {
			sim.values += len(value)
		}
	}
	return sim.page(ctx, in, resources)
}

// mostWork bounds the evaluations of a page: bytes of policies, for each 64 bytes that they are compared
// with. A request may have millions of pairs of an action and a resource.
const mostWork = 64 << 20

// work is what the evaluation of a resource costs.
func (sim *simulation) work(resource string) int {
	return sim.documents * (1 + (sim.values+len(resource))/64)
}

// page evaluates the pairs of an action and a resource that a page has. Like AWS it may end before
// there are as many as were asked for.
func (sim *simulation) page(ctx context.Context, in *SimulateCustomPolicyInput, resources []string) (*SimulationOutput, error) {
	const list = "evaluations"
	after, ok := api.ReadToken(list, in.Marker)
	next, pairs := 0, len(in.ActionNames)*len(resources)
	if after != "" {
		var err error
		next, err = strconv.Atoi(after)
		ok = ok && err == nil && 0 < next && next < pairs
	}
	if !ok {
		return nil, check.Invalid("Invalid Marker.")
	}
	out := &SimulationOutput{EvaluationResults: []EvaluationResult{}}
	left, limit := mostWork, check.Limit(in.MaxItems)
	for ; next < pairs; next++ {
		resource := resources[next%len(resources)]
		cost := sim.work(resource)
		if n := len(out.EvaluationResults); n == limit || n > 0 && left < cost {
			out.IsTruncated, out.Marker = true, api.NextToken(list, strconv.Itoa(next))
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		left -= cost
		out.EvaluationResults = append(out.EvaluationResults, sim.evaluate(in.ActionNames[next/len(resources)], resource))
	}
	return out, nil
}

// missingOf are the keys that policies ask for and a context does not have.
func missingOf(policies []simulated, given entries) []string {
	missing, seen := []string{}, map[string]bool{}
	for _, p := range policies {
		for _, name := range p.policy.ContextKeys() {
			if _, there := given[strings.ToLower(name)]; !there && !seen[name] {
				seen[name] = true
				missing = append(missing, name)
			}
		}
	}
	return missing
}

func policiesOf(all []simulated) (policies []*policy.Policy) {
	for _, p := range all {
		policies = append(policies, p.policy)
	}
	return policies
}

func (sim *simulation) evaluate(action, resource string) EvaluationResult {
	request := &policy.Request{Caller: &sim.who, Action: action, Resource: resource, Owner: sim.owner, Context: sim.context}
	decided := policy.Policies{Identity: policiesOf(sim.identity)}
	if len(sim.resource) > 0 {
		decided.Resource = sim.resource[0].policy
	}
	out := EvaluationResult{EvalActionName: action, EvalResourceName: resource, MatchedStatements: []MatchedStatement{}, MissingContextValues: sim.missing}
	if len(sim.boundary) > 0 {
		decided.Boundary = sim.boundary[0].policy
		out.PermissionsBoundaryDecisionDetail = &BoundaryDecision{decided.Boundary.Evaluate(request) == policy.Allow}
	}
	result := policy.Decide(request, &decided)
	out.EvalDecision = result.Decision.String()
	for _, p := range sim.all {
		p.policy.Matches(request, func(st *policy.Statement) {
			if st.Deny == (result.Decision == policy.ExplicitDeny) && result.Decision != policy.ImplicitDeny {
				out.MatchedStatements = append(out.MatchedStatements, MatchedStatement{p.id, p.kind, p.position(st.Start), p.position(st.End)})
			}
		})
	}
	return out
}

// position is the line and the column of an offset in a document.
func (p *simulated) position(at int) *Position {
	line, _ := slices.BinarySearch(p.breaks, at)
	if line == 0 {
		return &Position{1, at + 1}
	}
	return &Position{line + 1, at - p.breaks[line-1]}
}

func contextKeys(documents []string) (*ContextKeysOutput, error) {
	read := make([]simulated, 0, len(documents))
	for i, document := range documents {
		p, err := readSimulated("PolicyInputList."+strconv.Itoa(i+1), "", document, policy.ParseIdentity)
		if err != nil {
			return nil, err
		}
		read = append(read, p)
	}
	return &ContextKeysOutput{missingOf(read, nil)}, nil
}

func (s *Service) getContextKeysForCustomPolicy(_ context.Context, _ *api.Call, in *ContextKeysInput) (*ContextKeysOutput, error) {
	return contextKeys(in.PolicyInputList)
}

func (s *Service) getContextKeysForPrincipalPolicy(_ context.Context, call *api.Call, in *PrincipalContextKeysInput) (*ContextKeysOutput, error) {
	sources, boundary, err := s.sourcesOf(call, *in.PolicySourceArn)
	if err != nil {
		return nil, err
	}
	documents := in.PolicyInputList
	for _, from := range sources {
		documents = append(documents, from.Document)
	}
	if boundary != "" {
		documents = append(documents, boundary)
	}
	return contextKeys(documents)
}
