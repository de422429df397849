package lambda

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/api/lambda/variables"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/bundle"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/keys"
)

// maxZip bounds a zip in a request, in bytes.
const maxZip = 50 << 20

// The package types.
const (
	packageZip   = "Zip"
	packageImage = "Image"
)

// createFunction answers CreateFunction.
func (s *Service) createFunction(ctx context.Context, call *api.Call, in *CreateFunctionInput) (*FunctionConfiguration, error) {
	var c request.Constraints
	settings := configuring{
		Role: &in.Role, Runtime: in.Runtime, Handler: in.Handler, Description: in.Description, Timeout: in.Timeout, MemorySize: in.MemorySize,
		DeadLetter: in.DeadLetterConfig, Environment: in.Environment, Tracing: in.TracingConfig,
		Storage: in.EphemeralStorage, SnapStart: in.SnapStart, Logging: in.LoggingConfig, Architectures: in.Architectures,
	}
	settings.check(&c)
	request.CheckLayers(&c, in.Layers)
	c.Pattern("kMSKeyArn", in.KMSKeyArn, resourcePattern)
	c.Enum("packageType", in.PackageType, packageImage, packageZip)
	c.Length("codeSigningConfigArn", in.CodeSigningConfigArn, 0, 200)
	c.Pattern("codeSigningConfigArn", nonEmpty(in.CodeSigningConfigArn), signingPattern)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseNew(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	if err := unbuilt(unbuiltMembers{
		"KMSKeyArn": api.Deref(in.KMSKeyArn) != "" && s.Environments == nil, "FileSystemConfigs": len(in.FileSystemConfigs) > 0,
		"VpcConfig": in.VpcConfig.set(), "ImageConfig": in.ImageConfig.set(), "CapacityProviderConfig": in.CapacityProviderConfig != nil,
		"DurableConfig": in.DurableConfig != nil, "TenancyConfig": in.TenancyConfig != nil, "PublishTo": in.PublishTo != nil,
	}); err != nil {
		return nil, err
	}
	if api.Deref(in.CodeSigningConfigArn) != "" {
		return nil, fault.New(fault.CodeSigningNotFound, "The code signing configuration cannot be found. Check that the provided configuration "+
			"is not deleted: "+*in.CodeSigningConfigArn)
	}
	release, err := s.useLayers(ctx, call, in.Layers, &settings)
	if err != nil {
		return nil, err
	}
	defer release()
	config := defaults(fn, in.PackageType)
	if err := request.CheckTags(in.Tags); err != nil {
		return nil, err
	}
	source := codeSource{
		zip: in.Code.ZipFile, bucket: in.Code.S3Bucket, key: in.Code.S3Key, version: in.Code.S3ObjectVersion,
		image: in.Code.ImageUri, encrypted: api.Deref(in.Code.SourceKMSKeyArn) != "",
	}
	if err := source.fetch(ctx, s.Objects); err != nil {
		return nil, err
	}
	if err := s.lookUp(ctx, &settings); err != nil {
		return nil, err
	}
	if err := s.apply(&config, &settings); err != nil {
		return nil, err
	}
	if config.Package == packageZip && (config.Runtime == "" || config.Handler == "") {
		return nil, request.Invalid("Runtime and Handler are mandatory parameters for functions created with deployment packages.")
	}
	if config.Package == packageZip && source.zip == nil { // an image is none
		source.image = nil
	}
	code, err := source.read(config.Package)
	if err != nil {
		return nil, err
	}
	config.KMSKey = api.Deref(in.KMSKeyArn)
	info, err := s.create(ctx, call, function.Create{
		ARN: fn, Config: config, Code: code, Tags: in.Tags, Publish: in.Publish, Revision: s.NewRevision(), ReadyRevision: s.NewRevision(),
	}, source.zip)
	if err != nil {
		return nil, err
	}
	s.release(ctx, fn)
	return s.shown(call, &info, ""), nil // also for a version
}

// create encrypts a function's variables and creates it.
func (s *Service) create(ctx context.Context, call *api.Call, cmd function.Create, zip []byte) (shard.FunctionInfo, error) {
	s.granting.RLock()
	defer s.granting.RUnlock()
	undo, err := variables.Encrypt(s.Environments, call, cmd.ARN, &cmd.Config)
	if err != nil {
		return shard.FunctionInfo{}, err
	}
	info, err := s.engine.CreateFunction(ctx, cmd, zip)
	if err != nil {
		undo()
	}
	return info, err
}

// release ends the grants for a function's variables that none of its versions needs any
// more, or that a former function of its name has left.
func (s *Service) release(ctx context.Context, fn arn.ARN) {
	if s.Environments == nil {
		return
	}
	s.granting.Lock()
	defer s.granting.Unlock()
	ctx = context.WithoutCancel(ctx) // what it follows is done
	const page = 1000
	var uses []keys.Use
	for after, more := "", true; more; {
		var versions []shard.FunctionInfo
		var err error
		if versions, more, err = s.engine.ListVersions(ctx, fn, after, page); err != nil && fault.KindOf(err) != fault.ResourceNotFound {
			return
		}
		for i := range versions {
			if c := versions[i].Config; c.KMSKey != "" && c.Cipher != nil {
				uses = append(uses, keys.Use{Key: c.KMSKey, Role: c.Role})
			}
			after = versions[i].Version
		}
	}
	s.Environments.Release(fn, uses)
}

// codeSource has the code in a request, or where it is.
type codeSource struct {
	zip                  []byte
	bucket, key, version *string
	image                *string
	encrypted            bool
}

// fetch reads code from S3, and stores it as the zip.
func (c *codeSource) fetch(ctx context.Context, objects Objects) error {
	switch {
	case c.bucket == nil && c.key == nil && c.version == nil:
		return nil
	case objects == nil || objects.Host() == "":
		return request.Invalid("Code in S3 is not supported by this server, which is started without --artifacts-s3-endpoint. Send it in ZipFile.")
	case c.zip != nil || c.image != nil:
		return request.Invalid("Please do not provide other FunctionCode parameters when providing a ZipFile.")
	case api.Deref(c.bucket) == "" || api.Deref(c.key) == "":
		return request.Invalid("Please provide both S3Bucket and S3Key.")
	case c.version != nil:
		return request.Invalid("S3ObjectVersion is not supported by this version.")
	}
	code, err := objects.Get(ctx, *c.bucket, *c.key, maxZip)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return request.Invalid("Error occurred while GetObject. S3 Error: %s", fault.Excerpt(err.Error(), 300, "…"))
	}
	c.zip = code
	return nil
}

// read validates the code for a package type. It fails with InvalidParameter, or with
// RequestTooLarge.
func (c *codeSource) read(kind string) (function.Code, error) {
	switch {
	case c.encrypted:
		return function.Code{}, unbuilt(unbuiltMembers{"SourceKMSKeyArn": true})
	case kind == packageZip && c.image != nil:
		return function.Code{}, request.Invalid("Please don't provide ImageUri when updating a function with packageType Zip.")
	case kind == packageImage && c.zip != nil:
		return function.Code{}, request.Invalid("Please provide ImageUri when updating a function with packageType Image.")
	case c.zip == nil && c.image == nil:
		return function.Code{}, request.Invalid("Please provide a source for function code.")
	case c.image != nil:
		return remote(*c.image)
	case len(c.zip) > maxZip:
		return function.Code{}, fault.Newf(fault.RequestTooLarge, "Zipped size must be smaller than %d bytes", maxZip)
	}
	unzipped, err := bundle.Check(c.zip)
	switch {
	case errors.Is(err, bundle.ErrTooLarge):
		return function.Code{}, request.Invalid("Unzipped size must be smaller than %d bytes", bundle.MaxUnzipped)
	case errors.Is(err, bundle.ErrEmpty):
		return function.Code{}, request.Invalid("Uploaded file must be a non-empty zip")
	case err != nil:
		return function.Code{}, request.Invalid("Could not unzip uploaded file. Please check your file, then try to upload again.")
	}
	return function.Code{SHA256: sha256.Sum256(c.zip), Size: int64(len(c.zip)), Unzipped: unzipped}, nil
}

// maxURL bounds the URL of a remote function, in bytes.
const maxURL = 2048

// remote is the code of a function that runs elsewhere, by its URL. Images of a registry
// cannot be pulled.
func remote(image string) (function.Code, error) {
	u, err := url.Parse(image)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(image) > maxURL {
		return function.Code{}, request.Invalid("This version does not run container images. An ImageUri of up to %d bytes that begins with http:// or https:// "+
			"names a function that runs elsewhere.", maxURL)
	}
	return function.Code{URL: image}, nil
}

// updateFunctionCode answers UpdateFunctionCode.
func (s *Service) updateFunctionCode(ctx context.Context, call *api.Call, in *UpdateFunctionCodeInput) (*FunctionConfiguration, error) {
	var c request.Constraints
	settings := configuring{Architectures: in.Architectures}
	settings.check(&c)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	if err := unbuilt(unbuiltMembers{"PublishTo": in.PublishTo != nil}); err != nil {
		return nil, err
	}
	info, err := s.engine.FunctionInfo(ctx, fn, "")
	if err != nil {
		return nil, err
	}
	source := codeSource{
		zip: in.ZipFile, bucket: in.S3Bucket, key: in.S3Key, version: in.S3ObjectVersion,
		image: in.ImageUri, encrypted: api.Deref(in.SourceKMSKeyArn) != "",
	}
	if err := source.fetch(ctx, s.Objects); err != nil {
		return nil, err
	}
	code, err := source.read(info.Config.Package)
	if err != nil {
		return nil, err
	}
	change := func(config *function.Config) error { return s.apply(config, &settings) }
	if in.DryRun {
		config := *info.Config
		if err := cmp.Or(change(&config), function.CheckUnzipped(&config, code)); err != nil {
			return nil, err
		}
		info.Config, info.Code = &config, code
		return s.shown(call, &info, ""), nil
	}
	info, err = s.engine.UpdateFunctionCode(ctx, function.Update{
		ARN: fn, RevisionID: api.Deref(in.RevisionId), Change: change, Code: &code, Publish: in.Publish,
		Revision: s.NewRevision(), ReadyRevision: s.NewRevision(),
	}, source.zip)
	if err != nil {
		return nil, err
	}
	qualifier := ""
	if in.Publish {
		qualifier = info.Version
	}
	return s.shown(call, &info, qualifier), nil
}

// updateFunctionConfiguration answers UpdateFunctionConfiguration.
func (s *Service) updateFunctionConfiguration(ctx context.Context, call *api.Call, in *UpdateFunctionConfigurationInput) (*FunctionConfiguration, error) {
	var c request.Constraints
	settings := configuring{
		Role: in.Role, Runtime: in.Runtime, Handler: in.Handler, Description: in.Description, Timeout: in.Timeout, MemorySize: in.MemorySize,
		DeadLetter: in.DeadLetterConfig, Environment: in.Environment, Tracing: in.TracingConfig,
		Storage: in.EphemeralStorage, SnapStart: in.SnapStart, Logging: in.LoggingConfig,
	}
	settings.check(&c)
	request.CheckLayers(&c, in.Layers)
	c.Pattern("kMSKeyArn", in.KMSKeyArn, resourcePattern)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	if err := unbuilt(unbuiltMembers{
		"KMSKeyArn": api.Deref(in.KMSKeyArn) != "" && s.Environments == nil, "FileSystemConfigs": len(in.FileSystemConfigs) > 0,
		"VpcConfig": in.VpcConfig.set(), "ImageConfig": in.ImageConfig.set(), "CapacityProviderConfig": in.CapacityProviderConfig != nil,
		"DurableConfig": in.DurableConfig != nil,
	}); err != nil {
		return nil, err
	}
	release, err := s.useLayers(ctx, call, in.Layers, &settings)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.lookUp(ctx, &settings); err != nil {
		return nil, err
	}
	unzipped, err := s.unzipped(ctx, fn, in.Layers)
	if err != nil {
		return nil, err
	}
	info, err := s.update(ctx, call, function.Update{
		ARN: fn, RevisionID: api.Deref(in.RevisionId), Revision: s.NewRevision(), ReadyRevision: s.NewRevision(), Unzipped: unzipped,
	}, &settings, in.KMSKeyArn)
	if err != nil {
		return nil, err
	}
	if in.KMSKeyArn != nil || info.Config.KMSKey != "" {
		s.release(ctx, fn)
	}
	return s.shown(call, &info, ""), nil
}

// update changes a function's configuration by settings and the key in a request, if any.
func (s *Service) update(ctx context.Context, call *api.Call, cmd function.Update, settings *configuring, key *string) (shard.FunctionInfo, error) {
	s.granting.RLock()
	defer s.granting.RUnlock()
	change, undo, err := s.changing(ctx, call, cmd.ARN, settings, key)
	if err != nil {
		return shard.FunctionInfo{}, err
	}
	cmd.Change = change
	info, err := s.engine.UpdateFunctionConfiguration(ctx, cmd)
	if err != nil {
		undo()
	}
	return info, err
}

// changing returns a function that applies settings to a function's configuration. Variables
// are encrypted before, outside of locks. undo revokes the grants for that.
func (s *Service) changing(ctx context.Context, call *api.Call, fn arn.ARN, settings *configuring, key *string) (change func(*function.Config) error, undo func(), err error) {
	change, undo = func(config *function.Config) error { return s.apply(config, settings) }, func() {}
	before, err := s.engine.FunctionInfo(ctx, fn, "")
	if err != nil || key == nil && (before.Config.KMSKey == "" || settings.Environment == nil && settings.Role == nil) {
		return change, undo, nil //nolint:nilerr // the update refuses it for what it is
	}
	after := *before.Config
	if err := change(&after); err != nil {
		return change, undo, nil //nolint:nilerr // as well
	}
	put, undo, err := variables.Change(s.Environments, call, fn, variables.Update{Before: *before.Config, After: after, Replaced: settings.Environment != nil, Key: key})
	if err != nil {
		return nil, nil, err
	}
	return func(config *function.Config) error {
		if err := put(config); err != nil {
			return err
		}
		encrypted := *settings
		encrypted.Environment = nil
		return s.apply(config, &encrypted)
	}, undo, nil
}

// getFunction answers GetFunction.
func (s *Service) getFunction(ctx context.Context, call *api.Call, in *FunctionInput) (*GetFunctionOutput, error) {
	n, info, err := s.find(ctx, call, in)
	if err != nil {
		return nil, err
	}
	out := &GetFunctionOutput{Configuration: s.shown(call, &info, n.Qualifier)}
	if len(info.Tags) > 0 {
		out.Tags = info.Tags
	}
	if info.Code.URL != "" {
		out.Code = &FunctionCodeLocation{RepositoryType: "ECR", ImageUri: info.Code.URL, ResolvedImageUri: info.Code.URL}
	} else {
		location, err := s.location(call, &info)
		if err != nil {
			return nil, err
		}
		out.Code = &FunctionCodeLocation{RepositoryType: "S3", Location: location}
	}
	if info.Reserved != nil {
		out.Concurrency = &Concurrency{ReservedConcurrentExecutions: info.Reserved}
	}
	return out, nil
}

// getFunctionConfiguration answers GetFunctionConfiguration.
func (s *Service) getFunctionConfiguration(ctx context.Context, call *api.Call, in *FunctionInput) (*FunctionConfiguration, error) {
	n, info, err := s.find(ctx, call, in)
	if err != nil {
		return nil, err
	}
	return s.shown(call, &info, n.Qualifier), nil
}

func (s *Service) find(ctx context.Context, call *api.Call, in *FunctionInput) (request.Named, shard.FunctionInfo, error) {
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxLongName)
	if err != nil {
		return n, shard.FunctionInfo{}, err
	}
	info, err := s.engine.FunctionInfo(ctx, n.Function, n.Qualifier)
	return n, info, err
}

// deleteFunction answers DeleteFunction.
func (s *Service) deleteFunction(ctx context.Context, call *api.Call, in *FunctionInput) (*DeleteFunctionOutput, error) {
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxLongName)
	if err != nil {
		return nil, err
	}
	if err := s.engine.DeleteFunction(ctx, n.Function, n.Qualifier); err != nil {
		return nil, err
	}
	s.release(ctx, n.Function)
	return &DeleteFunctionOutput{StatusCode: 204}, nil
}

// shown converts a version for the answers of most operations; qualifier is the end of its
// ARN, if any. A version that this machine refuses to run is shown as failed.
func (s *Service) shown(call *api.Call, info *shard.FunctionInfo, qualifier string) *FunctionConfiguration {
	out := s.runnable(call, info, qualifier)
	if info.Config.Package == packageZip {
		out.RuntimeVersionConfig = &RuntimeVersionConfig{RuntimeVersionArn: runtimeVersion(info.ARN.Region, info.Config.Runtime)}
	}
	if s.Refusal == nil || info.Config.Package != packageZip {
		return out
	}
	if err := s.Refusal(); err != nil {
		const code = "InvalidRuntime"
		out.State, out.StateReason, out.StateReasonCode = "Failed", refusal.Text(err), code
		out.LastUpdateStatus, out.LastUpdateStatusReason, out.LastUpdateStatusReasonCode = "Failed", refusal.Text(err), code
	}
	return out
}

// runnable converts a version, whether or not this machine can run it. qualifier is the end
// of its ARN; empty: none.
func (s *Service) runnable(call *api.Call, info *shard.FunctionInfo, qualifier string) *FunctionConfiguration {
	config := info.Config
	out := &FunctionConfiguration{
		FunctionName: info.ARN.FunctionName(), FunctionArn: info.ARN.Qualify(qualifier).String(),
		Runtime: config.Runtime, Role: config.Role, Handler: config.Handler,
		CodeSize: int(info.Code.Size), CodeSha256: info.Code.Base64(), Description: &config.Description,
		Timeout: config.TimeoutS, MemorySize: config.MemoryMB, LastModified: info.Modified.Format("2006-01-02T15:04:05.000+0000"),
		Version: info.Version, RevisionId: info.Revision, PackageType: config.Package, Architectures: []string{config.Architecture},
		TracingConfig: &TracingConfig{Mode: &config.Tracing}, EphemeralStorage: &EphemeralStorage{Size: &config.EphemeralMB},
		SnapStart:     &SnapStartResponse{ApplyOn: "None", OptimizationStatus: "Off"},
		LoggingConfig: &LoggingConfig{LogFormat: &config.Logging.Format, LogGroup: &config.Logging.Group},
	}
	if config.Logging.ApplicationLevel != "" {
		out.LoggingConfig.ApplicationLogLevel, out.LoggingConfig.SystemLogLevel = &config.Logging.ApplicationLevel, &config.Logging.SystemLevel
	}
	for _, l := range config.Layers {
		out.Layers = append(out.Layers, Layer{Arn: l.ARN.String(), CodeSize: int(l.Size)})
	}
	out.KMSKeyArn = config.KMSKey
	if config.Environment != nil {
		out.Environment = &Environment{Variables: config.Environment}
	}
	if config.Cipher != nil && s.Environments != nil {
		out.Environment = &Environment{}
		out.Environment.Variables, out.Environment.Error = variables.Show(s.Environments, call, info.ARN, config.Cipher)
	}
	if !config.DeadLetter.IsZero() {
		out.DeadLetterConfig = &DeadLetterConfig{TargetArn: new(config.DeadLetter.String())}
	}
	const reason, code = "The function is being created.", "Creating"
	switch {
	case info.Pending:
		out.State, out.StateReason, out.StateReasonCode = "Pending", reason, code
	case info.Updating:
		out.State, out.LastUpdateStatus = "Active", "InProgress"
		out.LastUpdateStatusReason, out.LastUpdateStatusReasonCode = reason, code
	default:
		out.State, out.LastUpdateStatus = "Active", "Successful"
	}
	return out
}

// listed converts versions for lists, without their states.
func (s *Service) listed(call *api.Call, infos []shard.FunctionInfo, qualified bool) []FunctionConfiguration {
	all := make([]FunctionConfiguration, 0, len(infos))
	for i := range infos {
		qualifier := ""
		if qualified {
			qualifier = infos[i].Version
		}
		one := s.runnable(call, &infos[i], qualifier)
		one.State, one.StateReason, one.StateReasonCode = "", "", ""
		one.LastUpdateStatus, one.LastUpdateStatusReason, one.LastUpdateStatusReasonCode = "", "", ""
		all = append(all, *one)
	}
	return all
}

// unbuiltMembers has the members of features that are not implemented: true if the request
// has the member.
type unbuiltMembers map[string]bool

func unbuilt(members unbuiltMembers) error {
	var set []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return nil
	}
	return request.Invalid("Not supported by this version: %s.", strings.Join(set, ", "))
}

func (v *VpcConfig) set() bool {
	return v != nil && (len(v.SubnetIds) > 0 || len(v.SecurityGroupIds) > 0 || api.Deref(v.Ipv6AllowedForDualStack))
}

func (i *ImageConfig) set() bool {
	return i != nil && (len(i.EntryPoint) > 0 || len(i.Command) > 0 || api.Deref(i.WorkingDirectory) != "")
}

// nonEmpty is nil for an empty text, which means no value.
func nonEmpty(text *string) *string {
	if api.Deref(text) == "" {
		return nil
	}
	return text
}

// defaults is the default configuration of a function.
func defaults(fn arn.ARN, kind *string) function.Config {
	config := function.Config{
		Package: packageZip, TimeoutS: 3, MemoryMB: 128, EphemeralMB: 512, Tracing: "PassThrough", Architecture: "x86_64",
		Logging: function.Logging{Format: function.TextLogs, Group: "/aws/lambda/" + fn.FunctionName()},
	}
	if kind != nil {
		config.Package = *kind
	}
	return config
}
