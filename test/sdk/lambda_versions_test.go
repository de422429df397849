package sdk_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// A version keeps what the latest one was, and unchanged code makes no new one.
func TestPublishVersion(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	createFunction(t, endpoint, c, "f")
	name := aws.String("f")
	latest := configuration(t, c, "f")
	publish := func(in lambda.PublishVersionInput) *lambda.PublishVersionOutput {
		t.Helper()
		in.FunctionName = name
		return must(c.PublishVersion(t.Context(), &in))(t)
	}
	first := publish(lambda.PublishVersionInput{Description: aws.String("first"), CodeSha256: latest.CodeSha256, RevisionId: latest.RevisionId})
	equal(t, "the first version", functionARN("f")+":1 1 first Active Successful", fmt.Sprint(*first.FunctionArn, " ", *first.Version, " ",
		*first.Description, " ", first.State, " ", first.LastUpdateStatus))
	if first.StateReason != nil {
		t.Errorf("the first version says why: %s", *first.StateReason)
	}
	again := publish(lambda.PublishVersionInput{Description: aws.String("other")})
	equal(t, "unchanged", "1 first", fmt.Sprint(*again.Version, " ", *again.Description))
	equal(t, "its state", types.StateActive, configuration(t, c, "f:1").State)

	second := zipOf(t, "bootstrap", "second")
	updated := must(c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: name, ZipFile: second, Publish: true}))(t)
	equal(t, "the version of an update", functionARN("f")+":2", *updated.FunctionArn)
	completeFunctions(t, endpoint)
	must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: name, Timeout: aws.Int32(7)}))(t)
	completeFunctions(t, endpoint)
	equal(t, "the third version", "3", *publish(lambda.PublishVersionInput{}).Version)
	for version, want := range map[string]string{"1": "3 " + *latest.CodeSha256, "2": "3 " + *digest(second), "3": "7 " + *digest(second), "$LATEST": "7 " + *digest(second)} {
		got := configuration(t, c, "f:"+version)
		equal(t, "timeout and code of version "+version, want, fmt.Sprint(*got.Timeout, " ", *got.CodeSha256))
	}
	// A number is given once.
	must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: name, Qualifier: aws.String("3")}))(t)
	equal(t, "after deleting the last", "4", *publish(lambda.PublishVersionInput{}).Version)

	_, err := c.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: name, CodeSha256: latest.CodeSha256})
	refused(t, err, invalidValue, 400, fmt.Sprintf("CodeSHA256 (%s) is different from current CodeSHA256 in $LATEST (%s). "+
		"Please try again with the CodeSHA256 in $LATEST.", *latest.CodeSha256, *digest(second)))

	completeFunctions(t, endpoint)
	var versions []string
	in := &lambda.ListVersionsByFunctionInput{FunctionName: name, MaxItems: aws.Int32(2)}
	for {
		out := must(c.ListVersionsByFunction(t.Context(), in))(t)
		for _, v := range out.Versions {
			versions = append(versions, fmt.Sprint(*v.Version, v.State, v.LastUpdateStatus))
		}
		if in.Marker = out.NextMarker; in.Marker == nil {
			break
		}
	}
	equal(t, "the versions", []string{"$LATEST", "1", "2", "4"}, versions)
	_, err = c.ListVersionsByFunction(t.Context(), &lambda.ListVersionsByFunctionInput{FunctionName: name, Marker: aws.String("x")})
	refused(t, err, invalidValue, 400, "The Marker is not valid.")
}

func TestAliases(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Publish = true
	must(c.CreateFunction(t.Context(), in))(t)
	completeFunctions(t, endpoint)
	name := aws.String("f")
	must(c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: name, ZipFile: zipOf(t, "bootstrap", "#!/bin/sh"), Publish: true}))(t)
	completeFunctions(t, endpoint)

	created := must(c.CreateAlias(t.Context(), &lambda.CreateAliasInput{
		FunctionName: name, Name: aws.String("live"), FunctionVersion: aws.String("1"), Description: aws.String("d"),
		RoutingConfig: &types.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{"2": 0.25}},
	}))(t)
	want := types.AliasConfiguration{
		AliasArn: aws.String(functionARN("f") + ":live"), Name: aws.String("live"), FunctionVersion: aws.String("1"), Description: aws.String("d"),
		RoutingConfig: &types.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{"2": 0.25}}, RevisionId: created.RevisionId,
	}
	shown := func() types.AliasConfiguration {
		t.Helper()
		got := must(c.GetAlias(t.Context(), &lambda.GetAliasInput{FunctionName: name, Name: aws.String("live")}))(t)
		return types.AliasConfiguration{
			AliasArn: got.AliasArn, Name: got.Name, FunctionVersion: got.FunctionVersion, Description: got.Description,
			RoutingConfig: got.RoutingConfig, RevisionId: got.RevisionId,
		}
	}
	equal(t, "the alias", want, shown())
	got := configuration(t, c, functionARN("f")+":live")
	equal(t, "the function by its alias", functionARN("f")+":live 1", *got.FunctionArn+" "+*got.Version)

	updated := must(c.UpdateAlias(t.Context(), &lambda.UpdateAliasInput{
		FunctionName: name, Name: aws.String("live"), FunctionVersion: aws.String("2"), RevisionId: created.RevisionId,
		RoutingConfig: &types.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{}},
	}))(t)
	if *updated.RevisionId == *created.RevisionId {
		t.Error("the revision stayed the same")
	}
	want.FunctionVersion, want.RoutingConfig, want.RevisionId = aws.String("2"), nil, updated.RevisionId
	equal(t, "the updated alias", want, shown())
	_, err := c.UpdateAlias(t.Context(), &lambda.UpdateAliasInput{FunctionName: name, Name: aws.String("live"), RevisionId: created.RevisionId})
	refused(t, err, "PreconditionFailedException", 412, staleRevision)

	for _, other := range []string{"a", "b", "z"} {
		must(c.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: name, Name: &other, FunctionVersion: aws.String("$LATEST")}))(t)
	}
	var names []string
	list := &lambda.ListAliasesInput{FunctionName: name, MaxItems: aws.Int32(3)}
	for {
		out := must(c.ListAliases(t.Context(), list))(t)
		for _, a := range out.Aliases {
			names = append(names, *a.Name)
		}
		if list.Marker = out.NextMarker; list.Marker == nil {
			break
		}
	}
	equal(t, "the aliases", []string{"a", "b", "live", "z"}, names)
	of2 := must(c.ListAliases(t.Context(), &lambda.ListAliasesInput{FunctionName: name, FunctionVersion: aws.String("2")}))(t)
	equal(t, "those of version 2", "1 live", fmt.Sprint(len(of2.Aliases), " ", *of2.Aliases[0].Name))
	_, err = c.ListAliases(t.Context(), &lambda.ListAliasesInput{FunctionName: name, Marker: aws.String("x")})
	refused(t, err, invalidValue, 400, "The Marker is not valid.")

	create := func(alias, version string, weights map[string]float64) error {
		in := &lambda.CreateAliasInput{FunctionName: name, Name: &alias, FunctionVersion: &version}
		if weights != nil {
			in.RoutingConfig = &types.AliasRoutingConfiguration{AdditionalVersionWeights: weights}
		}
		_, err := c.CreateAlias(t.Context(), in)
		return err
	}
	refused(t, create("a", "1", nil), "ResourceConflictException", 409, "Alias already exists: "+functionARN("f")+":a")
	refused(t, create("c", "9", nil), notFound, 404, "Function not found: "+functionARN("f")+":9")
	refused(t, create("c", "1", map[string]float64{"9": 0.5}), notFound, 404, "Function not found: "+functionARN("f")+":9")
	refused(t, create("c", "1", map[string]float64{"1": 0.5}), invalidValue, 400,
		"Invalid function version 1. Function version 1 is already included in routing configuration.")
	refused(t, create("c", "$LATEST", map[string]float64{"1": 0.5}), invalidValue, 400,
		"$LATEST is not supported for an alias pointing to more than 1 version")
	refused(t, create("c", "1", map[string]float64{"1": 0.5, "2": 0.5}), invalidValue, 400,
		"Number of items in AdditionalVersionWeights cannot be greater than 1")
	for weight, text := range map[float64]string{2: "2.0", -1: "-1.0", 1.5: "1.5"} {
		refused(t, create("c", "1", map[string]float64{"2": weight}), "ValidationException", 400, "1 validation error detected: Value '{2="+text+"}' at "+
			"'routingConfig.additionalVersionWeights' failed to satisfy constraint: Map value must satisfy constraint: "+
			"[Member must have value less than or equal to 1.0, Member must have value greater than or equal to 0.0, Member must not be null]")
	}
	refused(t, create("c", "1", map[string]float64{"$LATEST": 0.5}), "ValidationException", 400, "1 validation error detected: Value "+
		"'{$LATEST=0.5}' at 'routingConfig.additionalVersionWeights' failed to satisfy constraint: Map keys must satisfy constraint: "+
		"[Member must have length less than or equal to 1024, Member must have length greater than or equal to 1, "+
		"Member must satisfy regular expression pattern: [0-9]+]")
	refused(t, create("12", "1", nil), "ValidationException", 400, "1 validation error detected: Value '12' at 'name' failed to satisfy "+
		"constraint: Member must satisfy regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)")
	_, err = c.UpdateAlias(t.Context(), &lambda.UpdateAliasInput{
		FunctionName: name, Name: aws.String("live"), RoutingConfig: &types.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{"2": 0.5}},
	})
	refused(t, err, invalidValue, 400, "Invalid function version 2. Function version 2 is already included in routing configuration.")

	must(c.DeleteAlias(t.Context(), &lambda.DeleteAliasInput{FunctionName: name, Name: aws.String("live")}))(t)
	must(c.DeleteAlias(t.Context(), &lambda.DeleteAliasInput{FunctionName: name, Name: aws.String("live")}))(t)
	_, err = c.GetAlias(t.Context(), &lambda.GetAliasInput{FunctionName: name, Name: aws.String("live")})
	refused(t, err, notFound, 404, "Cannot find alias arn: "+functionARN("f")+":live")
	_, err = c.UpdateAlias(t.Context(), &lambda.UpdateAliasInput{FunctionName: name, Name: aws.String("live")})
	refused(t, err, notFound, 404, "Alias not found: "+functionARN("f")+":live")
	_, err = c.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: aws.String("none"), Name: aws.String("a"), FunctionVersion: aws.String("7")})
	refused(t, err, notFound, 404, "Function not found: "+functionARN("none")+":7")
}

const staleRevision = "The Revision Id provided does not match the latest Revision Id. Call the GetFunction/GetAlias API to retrieve the latest Revision Id"

// A revision that is not the latest any more changes nothing.
func TestStaleRevisions(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	created := must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	completeFunctions(t, endpoint)
	before := configuration(t, c, "f")
	name, stale := aws.String("f"), created.RevisionId
	_, err := c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: name, ZipFile: zipOf(t, "bootstrap", "#!/bin/sh"), RevisionId: stale})
	refused(t, err, "PreconditionFailedException", 412, staleRevision)
	_, err = c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: name, Timeout: aws.Int32(9), RevisionId: stale})
	refused(t, err, "PreconditionFailedException", 412, staleRevision)
	_, err = c.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: name, RevisionId: stale})
	refused(t, err, "PreconditionFailedException", 412, staleRevision)
	after := configuration(t, c, "f")
	before.ResultMetadata = after.ResultMetadata
	equal(t, "the function", before, after)
}
