package kms

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
)

// PolicyName is the name of a key's only policy.
const PolicyName = "default"

// AliasPrefix is the prefix of all aliases, and ManagedPrefix of those of AWS managed keys.
const (
	AliasPrefix   = "alias/"
	ManagedPrefix = "alias/aws/"
)

// managed are the services with AWS managed keys here.
var managed = map[string]struct{ title, description string }{
	"sqs":    {"Simple Queue Service (SQS)", "Default key that protects my SQS messages when no other key is defined"},
	"sns":    {"Simple Notification Service (SNS)", "Default key that protects my SNS data when no other key is defined"},
	"lambda": {"AWS Lambda", "Default key that protects my Lambda functions when no other key is defined"},
}

// ManagedService is the service of an AWS managed key's alias; ok is false for other aliases.
func ManagedService(alias string) (service string, ok bool) {
	service, ok = strings.CutPrefix(alias, ManagedPrefix)
	if ok {
		_, ok = managed[service]
	}
	return service, ok
}

// PredefinedAliases are the aliases of AWS managed keys, sorted. Every account has them in
// every region, even before the key exists.
func PredefinedAliases() []string {
	services := slices.Sorted(maps.Keys(managed))
	for i, service := range services {
		services[i] = ManagedPrefix + service
	}
	return services
}

type document struct {
	Version   string
	ID        string `json:"Id"`
	Statement []statement
}

type statement struct {
	Sid       string
	Effect    string
	Principal map[string]string
	Action    any
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

func (d document) String() string {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		panic(err) // can always be marshalled
	}
	return string(text)
}

// DefaultPolicy is the policy of a key without one in the request: it lets the account's
// identity policies decide.
func DefaultPolicy(account string) string {
	return document{"2012-10-17", "key-default-1", []statement{{
		Sid: "Enable IAM User Permissions", Effect: "Allow", Principal: root(account), Action: "kms:*", Resource: "*",
	}}}.String()
}

func root(account string) map[string]string {
	return map[string]string{"AWS": arn.Root(account).String()}
}

// managedPolicy allows all identities of the account to use the key, but only through its
// service.
func managedPolicy(account, region, service string) string {
	title := managed[service].title
	return document{"2012-10-17", "auto-" + service + "-1", []statement{{
		Sid:    "Allow access through " + title + " for all principals in the account that are authorized to use " + title,
		Effect: "Allow", Principal: map[string]string{"AWS": "*"},
		Action:   []string{"kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:CreateGrant", "kms:DescribeKey"},
		Resource: "*",
		Condition: map[string]map[string]string{"StringEquals": {
			"kms:ViaService": service + "." + region + ".amazonaws.com", "kms:CallerAccount": account,
		}},
	}, {
		Sid: "Allow direct access to key metadata to the account", Effect: "Allow", Principal: root(account),
		Action: []string{"kms:Describe*", "kms:Get*", "kms:List*", "kms:RevokeGrant"}, Resource: "*",
	}}}.String()
}
