package lambda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
)

// The runtimes of the model, in the order of AWS's error message: those that can still be
// used, and the deprecated ones.
var (
	runtimes = []string{
		"nodejs20.x", "nodejs22.x", "nodejs24.x", "provided.al2", "provided.al2023", "python3.10", "python3.11", "python3.12", "python3.13",
		"python3.14", "java8.al2", "java11", "java17", "java21", "java25", "dotnet8", "dotnet10", "ruby3.2", "ruby3.3", "ruby3.4", "ruby4.0",
	}
	withdrawn = []string{
		"nodejs", "nodejs4.3", "nodejs4.3-edge", "nodejs6.10", "nodejs8.10", "nodejs10.x", "nodejs12.x", "nodejs14.x", "nodejs16.x", "nodejs18.x",
		"java8", "python2.7", "python3.6", "python3.7", "python3.8", "python3.9", "dotnetcore1.0", "dotnetcore2.0", "dotnetcore2.1",
		"dotnetcore3.1", "dotnet6", "go1.x", "ruby2.5", "ruby2.7", "provided",
	}
)

// runtimeVersion is the ARN of a runtime's version. This server has no versions of runtimes,
// so there is one for each runtime and region.
func runtimeVersion(region, runtime string) string {
	sum := sha256.Sum256([]byte(runtime))
	return "arn:" + arn.Partition + ":lambda:" + region + "::runtime:" + hex.EncodeToString(sum[:])
}

// lookUp finds out whether this machine has the runtime of settings, for apply: it may take seconds, and
// apply runs under locks. Errors: ctx's.
func (s *Service) lookUp(ctx context.Context, set *configuring) error {
	if set.Runtime != nil && s.Installed != nil && checkRuntime(*set.Runtime) == nil {
		set.missing = s.Installed(ctx, *set.Runtime)
	}
	return ctx.Err()
}

// checkRuntime refuses a runtime that this version does not have. It fails with
// InvalidParameter.
func checkRuntime(runtime string) error {
	switch {
	case slices.Contains(withdrawn, runtime):
		return request.Invalid("The runtime parameter of %s is no longer supported for creating or updating AWS Lambda functions. "+
			"We recommend you use a supported runtime while creating or updating functions.", runtime)
	case !slices.Contains(runtimes, runtime):
		return request.Invalid("Value %s at 'runtime' failed to satisfy constraint: %s or be a valid ARN",
			request.Shorten(runtime), check.Enum(runtimes...))
	}
	if !strings.HasPrefix(runtime, "provided") && !strings.HasPrefix(runtime, "nodejs") && !strings.HasPrefix(runtime, "python") {
		return request.Invalid("The runtime %s is not supported by this version, which runs provided.al2, provided.al2023, and those of Node.js and Python.", runtime)
	}
	return nil
}
