package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// regions are AWS's regions, of all partitions.
var regions = strings.Fields(`
	us-east-1 us-east-2 us-west-1 us-west-2 af-south-1 ap-east-1 ap-east-2 ap-south-1 ap-south-2
	ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4
	ap-southeast-5 ap-southeast-6 ap-southeast-7 ca-central-1 ca-west-1 eu-central-1 eu-central-2 eu-west-1 eu-west-2
	eu-west-3 eu-south-1 eu-south-2 eu-north-1 il-central-1 me-south-1 me-central-1 mx-central-1 sa-east-1
	cn-north-1 cn-northwest-1 us-gov-east-1 us-gov-west-1 us-iso-east-1 us-iso-west-1 us-isob-east-1 eusc-de-east-1`)

// regionForm matches a region that is valid in ARNs and host names.
var regionForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func isRegion(s string) bool { return len(s) <= 32 && regionForm.MatchString(s) }

// Warnings are settings that are allowed but probably mistakes, a sentence each, with the
// name of the flag.
func (c *Config) Warnings() []string {
	if slices.Contains(regions, c.Region) {
		return nil
	}
	return []string{fmt.Sprintf("--region: AWS has no region %q%s; requests that name none belong to it all the same", c.Region, DidYouMean(c.Region, regions))}
}

// DidYouMean suggests the most similar known name, in parentheses; empty: there is none.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}

// otherVariables are the prefixes of variables that are no settings: of the project's tests,
// and those that Kubernetes sets for a service named godwit.
var otherVariables = []string{
	"GODWIT_BINARY", "GODWIT_E2E_", "GODWIT_PROGRAMS", "GODWIT_SANDBOX_", "GODWIT_SEED", "GODWIT_SKIPPED", "GODWIT_SOAK", "GODWIT_TEST_",
	"GODWIT_PORT", "GODWIT_SERVICE_HOST", "GODWIT_SERVICE_PORT",
}

// UnknownVariables warns of the environment variables ("NAME=value") that begin with GODWIT_
// and are not known, a sentence each, in order. former maps deprecated names that still have
// an effect to the current ones.
func UnknownVariables(environment, known []string, former map[string]string) (warnings []string) {
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if now := former[name]; now != "" {
			warnings = append(warnings, fmt.Sprintf("%s is called %s now", name, now))
			continue
		}
		ours := strings.HasPrefix(name, "GODWIT_") && !slices.Contains(known, name)
		if ours && !slices.ContainsFunc(otherVariables, func(p string) bool { return strings.HasPrefix(name, p) }) {
			warnings = append(warnings, fmt.Sprintf("%s is not a setting%s", name, DidYouMean(name, known)))
		}
	}
	return warnings
}
