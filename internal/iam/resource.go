package iam

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The partitions of AWS, which a policy may use.
var partitions = []string{"aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b", "aws-iso-e", "aws-iso-f", "aws-eusc", "*"}

const fields = 6 // of an ARN

// fill splits a resource like an ARN: missing fields at the end count as "*", and any first
// field as "arn".
func fill(resource string) (parts []string) {
	parts = strings.SplitN(resource, ":", fields)
	for len(parts) < fields {
		parts = append(parts, "*")
	}
	parts[0] = "arn"
	return parts
}

// iamPaths are the prefixes of IAM's resources.
var iamPaths = []string{
	"user/", "federated-user/", "role/", "group/", "instance-profile/", "mfa/", "server-certificate/", "policy/", "sms-mfa/", "saml-provider/", "oidc-provider/",
	"report/", "access-report/",
}

// checkResources refuses resources that are invalid in AWS's policies.
func checkResources(resources []string) error {
	for _, resource := range resources {
		if resource == "*" {
			continue
		}
		if !strings.Contains(resource, ":") {
			return ErrNoARN.With(resource)
		}
		parts := fill(resource)
		partition, service, region, account, rest := parts[1], parts[2], parts[3], parts[4], parts[5]
		regional := region != "" && region != "*"
		switch {
		case !slices.Contains(partitions, partition):
			return ErrPartition.With(partition, strings.Join(parts, ":"))
		case strings.ContainsAny(service, "*?"):
			return ErrResourceVendor
		case service == "iam" && regional:
			return ErrIAMRegion.With(resource)
		case service == "s3" && regional && account == "":
			return ErrS3Region.With(resource)
		case service == "iam" && rest != "root" && !strings.ContainsAny(rest[:min(len(rest), 1)], "*?$") &&
			!slices.ContainsFunc(iamPaths, func(path string) bool { return strings.HasPrefix(rest, path) }) && !strings.ContainsAny(rest, "*?"):
			return ErrIAMPath.With(strings.Join(iamPaths, ", "))
		}
	}
	return nil
}

// oddARN reports whether a resource has fields that are invalid in ARNs.
func oddARN(resource string) bool {
	if !strings.Contains(resource, ":") {
		return false
	}
	parts := fill(resource)
	return slices.Contains(partitions, parts[1]) && (parts[2] == "" || strings.ContainsAny(parts[4], "_ /"))
}

var w3cDate = regexp.MustCompile(`^[0-9]{1,4}(-(0?[1-9]|1[0-2])(-[0-9]{1,2})?)?([Tt]([0-9]{1,2}(:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{1,9})?)?)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$`)

// noDate reports whether an operand is neither seconds since 1970 nor a date.
func noDate(operand string) bool {
	if strings.Contains(operand, "${") {
		return false
	}
	if n, err := strconv.ParseInt(operand, 10, 64); err == nil {
		return n == math.MinInt64
	}
	return !w3cDate.MatchString(operand)
}
