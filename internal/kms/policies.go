package kms

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// PolicyName is the name of the one policy that a key has.
const PolicyName = "default"

// AliasPrefix begins the names of all aliases, and ManagedPrefix those of AWS's keys.
const (
	AliasPrefix   = "alias/"
	ManagedPrefix = "alias/aws/"
)

// managed are the services that have keys of AWS's here.
var managed = map[string]struct{ title, description string }{
	"sqs":    {"Simple Queue Service (SQS)", "Default key that protects my SQS messages when no other key is defined"},
	"sns":    {"Simple Notification Service (SNS)", "Default key that protects my SNS data when no other key is defined"},
	"lambda": {"AWS Lambda", "Default key that protects my Lambda functions when no other key is defined"},
}

// ManagedService is the service whose AWS managed key an alias names; ok is false for any
// other alias.
func ManagedService(alias string) (service string, ok bool) {
	service, ok = strings.CutPrefix(alias, ManagedPrefix)
	if ok {
		_, ok = managed[service]
	}
	return service, ok
}

// PredefinedAliases are the names of the aliases of AWS managed keys, in their order. Every
// account has them in every region, before there is a key.
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
		panic(err) // it always can be written
	}
	return string(text)
}

// DefaultPolicy is that of a key for which none is given: it leaves it to the account's
// identity policies who may do what.
func DefaultPolicy(account string) string {
	return document{"2012-10-17", "key-default-1", []statement{{
		Sid: "Enable IAM User Permissions", Effect: "Allow", Principal: root(account), Action: "kms:*", Resource: "*",
	}}}.String()
}

func root(account string) map[string]string {
	return map[string]string{"AWS": "arn:aws:iam::" + account + ":root"}
}

// managedPolicy lets everybody of the account use the key, through its service only.
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
