package sam

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
)

// function is a function being expanded.
type function struct {
	maker
	x          *expansion
	id         string
	node       *node // the resource, as written
	properties *node // with the globals
	code       *node
	managed    []string // policies of the role in addition to its own
	statements []*node  // of the role's own policies
	target     *node    // invoked by events: the function, or its alias
}

// passed are the properties that are copied to the function.
var passed = []string{
	"FunctionName", "Handler", "Runtime", "Description", "MemorySize", "Timeout", "Environment", "Layers", "VpcConfig", "KmsKeyArn",
	"Architectures", "EphemeralStorage", "ReservedConcurrentExecutions", "PackageType", "ImageConfig", "LoggingConfig", "SnapStart",
	"RuntimeManagementConfig", "FileSystemConfigs", "CodeSigningConfigArn", "RecursiveLoop",
}

// understood are the other supported properties.
var understood = []string{
	"CodeUri", "InlineCode", "ImageUri", "Role", "RolePath", "PermissionsBoundary", "Policies", "AssumeRolePolicyDocument",
	"DeadLetterQueue", "Tracing", "Tags", "PropagateTags", "Events", "EventInvokeConfig", "AutoPublishAlias", "AutoPublishAliasAllProperties", "AutoPublishCodeSha256",
	"VersionDescription", "ProvisionedConcurrencyConfig", "FunctionUrlConfig",
}

func (x *expansion) function(id string, n *node) error {
	own := n.Get("Properties")
	if own != nil && own.Kind != document.Map {
		return invalid(n, id, ErrProperties)
	}
	x.nodes += n.Count() + 1
	if x.globals != nil {
		x.nodes += x.globals.Count()
	}
	if x.nodes > document.MaxNodes {
		return invalid(n, id, ErrTooMany)
	}
	if n.Get("Connectors") != nil {
		return invalid(n, id, ErrConnectors)
	}
	f := &function{maker: maker{n.Line}, x: x, id: id, node: n, properties: document.NewMap(n.Line)}
	if own != nil || x.globals != nil {
		f.properties = merged(x.globals, own)
	}
	for _, m := range f.properties.Members {
		if !slices.Contains(passed, m.Name) && !slices.Contains(understood, m.Name) {
			return f.invalid(ErrProperty.With(m.Name, functionType))
		}
	}
	f.target = f.ref(id)
	f.managed = []string{"service-role/AWSLambdaBasicExecutionRole"}
	properties, err := f.lambda()
	if err != nil {
		return err
	}
	at := len(x.made) // the function precedes its other resources
	x.made = append(x.made, document.Member{Name: id})
	for _, step := range []func() error{f.publish, f.url, f.invokeConfig, f.events} {
		if err := step(); err != nil {
			return err
		}
	}
	role := f.properties.Get("Role")
	if role == nil {
		if role, err = f.role(); err != nil {
			return err
		}
	}
	properties = append(properties, document.Member{Name: "Role", Value: role.Clone()})
	all := []document.Member{{Name: "Type", Value: f.text("AWS::Lambda::Function")}}
	for _, m := range n.Members {
		if m.Name != "Type" && m.Name != "Properties" && m.Name != "IgnoreGlobals" {
			all = append(all, document.Member{Name: m.Name, Value: m.Value.Clone()})
		}
	}
	x.made[at].Value = document.NewMap(n.Line, append(all, document.Member{Name: "Properties", Value: document.NewMap(n.Line, properties...)})...)
	return nil
}

func (f *function) invalid(err error) error { return invalid(f.node, f.id, err) }

// add makes a resource of the function; its id begins with the function's.
func (f *function) add(suffix, typ string, properties *node) (id string, err error) {
	id = f.id + suffix
	return id, f.x.add(f.node, f.id, id, f.resource(f.node, typ, properties))
}

// lambda is the expanded function, without its role.
func (f *function) lambda() ([]document.Member, error) {
	var err error
	if f.code, err = f.codeOf(); err != nil {
		return nil, err
	}
	properties := []document.Member{{Name: "Code", Value: f.code.Clone()}}
	for _, m := range f.properties.Members {
		if slices.Contains(passed, m.Name) {
			properties = append(properties, document.Member{Name: m.Name, Value: m.Value.Clone()})
		}
	}
	if tracing := f.properties.Get("Tracing"); tracing != nil {
		properties = append(properties, document.Member{Name: "TracingConfig", Value: f.object("Mode", tracing)})
		if tracing.Text != "Disabled" {
			f.managed = append(f.managed, "AWSXRayDaemonWriteAccess")
		}
	}
	if f.properties.Get("VpcConfig") != nil {
		f.managed = append(f.managed, "service-role/AWSLambdaVPCAccessExecutionRole")
	}
	if queue := f.properties.Get("DeadLetterQueue"); queue != nil {
		target := queue.Get("TargetArn")
		actions := map[string]string{"SQS": "sqs:SendMessage", "SNS": "sns:Publish"}
		typ := queue.Get("Type")
		if target == nil || typ == nil || actions[typ.Text] == "" {
			return nil, f.invalid(ErrDeadLetter)
		}
		properties = append(properties, document.Member{Name: "DeadLetterConfig", Value: f.object("TargetArn", target)})
		f.statements = append(f.statements, f.allow(f.texts(actions[typ.Text]), target))
	}
	return append(properties, document.Member{Name: "Tags", Value: f.tags()}), nil
}

// tags are a list of the model's map of tags, and a tag for the resource's origin.
func (f *function) tags() *node {
	items := []*node{f.object("Key", "lambda:createdBy", "Value", "SAM")}
	for _, m := range members(f.properties.Get("Tags")) {
		items = append(items, f.object("Key", m.Name, "Value", m.Value))
	}
	return f.list(items...)
}

var s3 = regexp.MustCompile(`^s3://([^/]+)/([^?]+)(?:\?versionId=([^&]+))?$`)

// codeOf is the function's code property.
func (f *function) codeOf() (*node, error) {
	if inline := f.properties.Get("InlineCode"); inline != nil {
		return f.object("ZipFile", inline), nil
	}
	if image := f.properties.Get("ImageUri"); image != nil {
		return f.object("ImageUri", image), nil
	}
	uri := f.properties.Get("CodeUri")
	switch {
	case uri == nil:
		return nil, f.invalid(ErrNoCode)
	case uri.Kind == document.Map && uri.Get("Bucket") != nil && uri.Get("Key") != nil:
		return f.object("S3Bucket", uri.Get("Bucket"), "S3Key", uri.Get("Key"), "S3ObjectVersion", uri.Get("Version")), nil
	case uri.Kind == document.String:
		if m := s3.FindStringSubmatch(uri.Text); m != nil {
			var version any
			if m[3] != "" {
				version = m[3]
			}
			return f.object("S3Bucket", m[1], "S3Key", m[2], "S3ObjectVersion", version), nil
		}
	}
	return nil, f.invalid(ErrCode)
}

var aliasName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// publish makes a version for this code and an alias of it, which events then invoke.
func (f *function) publish() error {
	alias := f.properties.Get("AutoPublishAlias")
	if alias == nil {
		return nil
	}
	if alias.Kind != document.String || !aliasName.MatchString(alias.Text) {
		return f.invalid(ErrAlias)
	}
	of, _ := f.code.MarshalJSON() // it never fails
	if hash := f.properties.Get("AutoPublishCodeSha256"); hash != nil {
		of = []byte(hash.Text)
	}
	if all := f.properties.Get("AutoPublishAliasAllProperties"); all != nil && all.Text == "true" {
		every, _ := f.properties.MarshalJSON()
		of = append(slices.Clip(of), every...)
	}
	sum := sha256.Sum256(of)
	version := f.id + "Version" + hex.EncodeToString(sum[:])[:10]
	resource := f.object("Type", "AWS::Lambda::Version", "Condition", f.node.Get("Condition"), "DeletionPolicy", "Retain", "Properties",
		f.object("FunctionName", f.ref(f.id), "Description", f.properties.Get("VersionDescription")))
	if err := f.x.add(f.node, f.id, version, resource); err != nil {
		return err
	}
	id, err := f.add("Alias"+lettersOf(alias.Text), "AWS::Lambda::Alias", f.object(
		"Name", alias, "FunctionName", f.ref(f.id), "FunctionVersion", f.getAtt(version, "Version"),
		"ProvisionedConcurrencyConfig", f.properties.Get("ProvisionedConcurrencyConfig")))
	f.x.renamed[f.id+".Version"], f.x.renamed[f.id+".Alias"] = version, id
	f.target = f.ref(id)
	return err
}

func lettersOf(s string) string { return strings.NewReplacer("-", "", "_", "").Replace(s) }

// qualifier is the qualifier of the function that events invoke.
func (f *function) qualifier() *node {
	if alias := f.properties.Get("AutoPublishAlias"); alias != nil {
		return alias
	}
	return nil
}

// url makes the function's URL.
func (f *function) url() error {
	config := f.properties.Get("FunctionUrlConfig")
	if config == nil {
		return nil
	}
	auth := config.Get("AuthType")
	if auth == nil || auth.Text != "AWS_IAM" && auth.Text != "NONE" {
		return f.invalid(ErrURLAuth)
	}
	_, err := f.add("Url", "AWS::Lambda::Url", f.object("TargetFunctionArn", f.target, // Qualifier would only name the alias, which has to be there first
		"AuthType", auth, "Cors", config.Get("Cors"), "InvokeMode", config.Get("InvokeMode")))
	if err != nil || auth.Text != "NONE" {
		return err
	}
	_, err = f.add("UrlPublicPermissions", "AWS::Lambda::Permission", f.object("Action", "lambda:InvokeFunctionUrl", "FunctionName", f.target,
		"Principal", "*", "FunctionUrlAuthType", "NONE"))
	return err
}

// invokeConfig makes the configuration for events on which the function fails.
func (f *function) invokeConfig() error {
	config := f.properties.Get("EventInvokeConfig")
	if config == nil {
		return nil
	}
	var destinations []any
	for _, name := range []string{"OnSuccess", "OnFailure"} {
		to := config.Get("DestinationConfig").Get(name)
		if to == nil {
			continue
		}
		typ, destination := to.Get("Type"), to.Get("Destination")
		actions := map[string]string{"SQS": "sqs:SendMessage", "SNS": "sns:Publish", "Lambda": "lambda:InvokeFunction"}
		if typ == nil || actions[typ.Text] == "" || destination == nil {
			return f.invalid(ErrDestination.With(name))
		}
		f.statements = append(f.statements, f.allow(f.texts(actions[typ.Text]), destination))
		destinations = append(destinations, name, f.object("Destination", destination))
	}
	var to *node
	if destinations != nil {
		to = f.object(destinations...)
	}
	qualifier := f.qualifier()
	if qualifier == nil {
		qualifier = f.text("$LATEST")
	}
	var after any // the alias, which the qualifier only names
	if alias := f.x.renamed[f.id+".Alias"]; alias != "" {
		after = alias
	}
	return f.x.add(f.node, f.id, f.id+"EventInvokeConfig", f.object("Type", "AWS::Lambda::EventInvokeConfig", "DependsOn", after, "Condition", f.node.Get("Condition"),
		"Properties", f.object("FunctionName", f.ref(f.id), "Qualifier", qualifier, "MaximumEventAgeInSeconds", config.Get("MaximumEventAgeInSeconds"),
			"MaximumRetryAttempts", config.Get("MaximumRetryAttempts"), "DestinationConfig", to)))
}

// allow is a statement of a policy.
func (m maker) allow(actions, resource *node) *node {
	return m.object("Effect", "Allow", "Action", actions, "Resource", resource)
}

// policy is a document of statements.
func (m maker) policy(statements ...*node) *node {
	return m.object("Version", "2012-10-17", "Statement", m.list(statements...))
}
