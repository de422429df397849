package sdk_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// sealedWorld is a server with a key that the account's policies decide about.
type sealedWorld struct {
	endpoint   string
	functions  *lambda.Client
	identities *iam.Client
	keys       *kms.Client
	key        string // ARN
}

func newSealedWorld(t *testing.T) *sealedWorld {
	t.Helper()
	endpoint := start(t)
	w := &sealedWorld{endpoint: endpoint, functions: functionsClient(endpoint), identities: iamClient(endpoint), keys: newKMS(t, endpoint, account)}
	w.key = *makeKey(t, w.keys, &kms.CreateKeyInput{}).Arn
	return w
}

// as is a client of a user who may what the statements say.
func (w *sealedWorld) as(t *testing.T, name string, statements ...string) *lambda.Client {
	t.Helper()
	return lambda.New(lambda.Options{BaseEndpoint: &w.endpoint, Region: region, Credentials: userOf(t, w.identities, name, policyOf(strings.Join(statements, ","))), RetryMaxAttempts: 1, HTTPClient: eager})
}

func withVariable(value string) *types.Environment {
	return &types.Environment{Variables: map[string]string{"PASSWORD": value}}
}

// sees is whether a function's processes have a variable.
func (w *sealedWorld) sees(t *testing.T, name, variable string) bool {
	t.Helper()
	var all []string
	if err := json.Unmarshal(invoke(t, w.functions, name, `{"env":true}`).Payload, &all); err != nil {
		t.Fatal(err)
	}
	return slices.Contains(all, variable)
}

const anyFunction = `{"Effect":"Allow","Action":["lambda:*","iam:PassRole"],"Resource":"*"}`

// The variables of a function with a customer's key are encrypted under it: who may decrypt
// sees them, who may not an error instead, and the function's role by a grant, whatever its
// policies say.
func TestEnvironmentUnderACustomersKey(t *testing.T) {
	w := newSealedWorld(t)
	plain := role(t, w.identities, "plain", nothing)
	createProgram(t, w.functions, "f", func(in *lambda.CreateFunctionInput) {
		in.Role, in.KMSKeyArn, in.Environment = &plain, &w.key, withVariable("first")
	})
	got := configuration(t, w.functions, "f")
	equal(t, "the key", w.key, aws.ToString(got.KMSKeyArn))
	equal(t, "what the root sees", &types.EnvironmentResponse{Variables: map[string]string{"PASSWORD": "first"}}, got.Environment)
	equal(t, "what the function sees", true, w.sees(t, "f", "PASSWORD=first"))

	const me = "User: arn:aws:iam::000000000000:user/"
	why := " is not authorized to perform: kms:Decrypt on resource: " + w.key + " because no identity-based policy allows the kms:Decrypt action"
	reader := w.as(t, "reader", anyFunction)
	failure := &types.EnvironmentResponse{Error: &types.EnvironmentError{
		ErrorCode: aws.String("AccessDeniedException"),
		Message: aws.String("Lambda was unable to decrypt your environment variables because the KMS access was denied. Please check your KMS permissions. " +
			"KMS Exception: AccessDeniedException KMS Message: " + me + "reader" + why),
	}}
	equal(t, "what who may not decrypt sees", failure, configuration(t, reader, "f").Environment)
	equal(t, "in GetFunction", failure, must(reader.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: aws.String("f")}))(t).Configuration.Environment)
	equal(t, "in lists", failure, must(reader.ListFunctions(t.Context(), &lambda.ListFunctionsInput{}))(t).Functions[0].Environment)
	equal(t, "in lists of versions", failure, must(reader.ListVersionsByFunction(t.Context(), &lambda.ListVersionsByFunctionInput{FunctionName: aws.String("f")}))(t).Versions[0].Environment)

	// By Lambda's hand only.
	through := w.as(t, "through", anyFunction, `{"Effect":"Allow","Action":"kms:Decrypt","Resource":"`+w.key+`","Condition":{"StringEquals":{`+
		`"kms:ViaService":"lambda.us-east-1.amazonaws.com","kms:EncryptionContext:aws:lambda:FunctionArn":"`+functionARN("f")+`"}}}`)
	equal(t, "what who may decrypt through Lambda sees", map[string]string{"PASSWORD": "first"}, configuration(t, through, "f").Environment.Variables)

	// Who changes the variables needs the rights to encrypt and to make the grant.
	update := func(c *lambda.Client, change func(in *lambda.UpdateFunctionConfigurationInput)) error {
		in := &lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String("f")}
		change(in)
		_, err := c.UpdateFunctionConfiguration(t.Context(), in)
		advance(t, w.endpoint, "1s")
		return err
	}
	second := func(in *lambda.UpdateFunctionConfigurationInput) { in.Environment = withVariable("second") }
	refused(t, update(reader, second), "InvalidParameterValueException", http.StatusBadRequest,
		"Lambda was unable to encrypt your environment variables because the KMS access was denied. Please check your KMS permissions. KMS Exception: AccessDeniedException KMS Message: "+
			me+"reader"+strings.ReplaceAll(why, "Decrypt", "Encrypt"))
	setUser(t, w.identities, "reader", policyOf(anyFunction+`,{"Effect":"Allow","Action":"kms:Encrypt","Resource":"*"}`))
	refused(t, update(reader, second), "InvalidParameterValueException", http.StatusBadRequest,
		"Lambda was unable to configure access to your environment variables because the KMS key is invalid for CreateGrant. Please check your KMS key settings. "+
			"KMS Exception: AccessDeniedException KMS Message: "+me+"reader"+strings.ReplaceAll(why, "Decrypt", "CreateGrant"))
	equal(t, "after refusals", map[string]string{"PASSWORD": "first"}, configuration(t, w.functions, "f").Environment.Variables)
	setUser(t, w.identities, "reader", policyOf(anyFunction+`,{"Effect":"Allow","Action":"kms:Encrypt","Resource":"*"},`+
		`{"Effect":"Allow","Action":"kms:CreateGrant","Resource":"*","Condition":{"Bool":{"kms:GrantIsForAWSResource":"true"}}}`))
	if err := update(reader, second); err != nil {
		t.Error(err)
	}
	equal(t, "what the function sees of the second", true, w.sees(t, "f", "PASSWORD=second"))
	if err := update(reader, func(in *lambda.UpdateFunctionConfigurationInput) { in.Description = aws.String("other") }); err != nil {
		t.Errorf("a change of something else needs no key: %v", err)
	}

	// Without the key they are in clear again, and with another one under that; either needs
	// the right to decrypt.
	err := update(reader, func(in *lambda.UpdateFunctionConfigurationInput) { in.KMSKeyArn = aws.String("") })
	refused(t, err, "InvalidParameterValueException", http.StatusBadRequest, *failure.Error.Message)
	if err := update(w.functions, func(in *lambda.UpdateFunctionConfigurationInput) { in.KMSKeyArn = aws.String("") }); err != nil {
		t.Error(err)
	}
	equal(t, "without a key", "", aws.ToString(configuration(t, reader, "f").KMSKeyArn))
	equal(t, "in clear", map[string]string{"PASSWORD": "second"}, configuration(t, reader, "f").Environment.Variables)
	other := *makeKey(t, w.keys, &kms.CreateKeyInput{}).Arn
	if err := update(w.functions, func(in *lambda.UpdateFunctionConfigurationInput) { in.KMSKeyArn = &other }); err != nil {
		t.Error(err)
	}
	equal(t, "under another key", true, w.sees(t, "f", "PASSWORD=second"))

	// A version keeps its own.
	must(w.functions.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: aws.String("f")}))(t)
	if err := update(w.functions, func(in *lambda.UpdateFunctionConfigurationInput) {
		in.Environment = &types.Environment{Variables: map[string]string{}}
	}); err != nil {
		t.Error(err)
	}
	equal(t, "the version's", true, w.sees(t, "f:1", "PASSWORD=second"))
	equal(t, "none", 0, len(configuration(t, w.functions, "f").Environment.Variables))
}

// A new process of a function has to decrypt: a key that is disabled or to be deleted, or a
// grant that is gone, stops it, with the error that the model has for it.
func TestEnvironmentThatCannotBeDecrypted(t *testing.T) {
	w := newSealedWorld(t)
	plain := role(t, w.identities, "plain", nothing)
	create := func(name string) {
		createProgram(t, w.functions, name, func(in *lambda.CreateFunctionInput) {
			in.Role, in.KMSKeyArn, in.Environment = &plain, &w.key, withVariable("x")
		})
	}
	invoked := func(name string) error {
		_, err := w.functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, Payload: []byte(`{}`)})
		return err
	}
	const unable, check = "Lambda was unable to decrypt the environment variables because ", ". Please check the function's KMS key settings. KMS Exception: "
	create("f")
	grants := must(w.keys.ListGrants(t.Context(), &kms.ListGrantsInput{KeyId: &w.key}))(t).Grants
	equal(t, "grants", 1, len(grants))
	equal(t, "whose", plain, aws.ToString(grants[0].GranteePrincipal))
	equal(t, "for what", map[string]string{"aws:lambda:FunctionArn": functionARN("f")}, grants[0].Constraints.EncryptionContextEquals)
	must(w.keys.RevokeGrant(t.Context(), &kms.RevokeGrantInput{KeyId: &w.key, GrantId: grants[0].GrantId}))(t)
	refused(t, invoked("f"), "KMSAccessDeniedException", http.StatusBadGateway, unable+"KMS access was denied"+check+"AccessDeniedExceptionKMS Message: "+
		"User: arn:aws:sts::000000000000:assumed-role/plain/f is not authorized to perform: kms:Decrypt on resource: "+w.key+" because no identity-based policy allows the kms:Decrypt action")
	role(t, w.identities, "plain", allow(w.key, "kms:Decrypt"))
	equal(t, "by the role's own right", nil, invoked("f"))

	create("g")
	must(w.keys.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &w.key}))(t)
	refused(t, invoked("g"), "KMSDisabledException", http.StatusBadGateway, unable+"the KMS key used is disabled"+check+"DisabledExceptionKMS Message: "+w.key+" is disabled.")
	equal(t, "shown", "DisabledException", *configuration(t, w.functions, "g").Environment.Error.ErrorCode)
	_, err := w.functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String("h"), Role: &plain, Runtime: types.RuntimeProvidedal2023, Handler: aws.String("x"), Code: &types.FunctionCode{ZipFile: must(goProgram())(t)},
		KMSKeyArn: &w.key, Environment: withVariable("x"),
	})
	refused(t, err, "InvalidParameterValueException", http.StatusBadRequest, "Lambda was unable to configure access to your environment variables because the KMS key is invalid for CreateGrant. "+
		"Please check your KMS key settings. KMS Exception: DisabledException KMS Message: "+w.key+" is disabled.")
	must(w.keys.EnableKey(t.Context(), &kms.EnableKeyInput{KeyId: &w.key}))(t)
	equal(t, "enabled again", nil, invoked("g"))

	create("i")
	must(w.keys.ScheduleKeyDeletion(t.Context(), &kms.ScheduleKeyDeletionInput{KeyId: &w.key, PendingWindowInDays: aws.Int32(7)}))(t)
	refused(t, invoked("i"), "KMSInvalidStateException", http.StatusBadGateway, unable+"the state of the KMS key used is not valid for Decrypt"+check+
		"KMSInvalidStateExceptionKMS Message: "+w.key+" is pending deletion.")
	advance(t, w.endpoint, "169h")
	refused(t, invoked("i"), "KMSAccessDeniedException", http.StatusBadGateway, unable+"KMS access was denied"+check+"AccessDeniedExceptionKMS Message: "+
		"The ciphertext refers to a customer master key that does not exist, does not exist in this region, or you are not allowed to access.")
}

// What is no key's ARN is refused, and nothing is left behind by what is refused.
func TestKeysOfFunctions(t *testing.T) {
	w := newSealedWorld(t)
	must(w.keys.CreateAlias(t.Context(), &kms.CreateAliasInput{AliasName: aws.String("alias/a"), TargetKeyId: &w.key}))(t)
	far := startFar(t)
	create := func(name, key, role string) error {
		_, err := w.functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
			FunctionName: &name, Role: &role, PackageType: types.PackageTypeImage, Code: &types.FunctionCode{ImageUri: &far.URL}, KMSKeyArn: &key, Environment: withVariable("x"),
		})
		return err
	}
	const invalid = "Lambda was unable to configure access to your environment variables because the KMS key is invalid for CreateGrant. Please check your KMS key settings. KMS Exception: "
	prefix := "arn:aws:kms:us-east-1:000000000000:"
	for key, text := range map[string]string{
		prefix + "alias/a":  "InvalidArnException KMS Message: Key Aliases are not supported for this operation.",
		queueARN("q"):       "InvalidArnException KMS Message: Invalid arn " + queueARN("q"),
		prefix + "key/none": "NotFoundException KMS Message: Key '" + prefix + "key/none' does not exist",
	} {
		refused(t, create("f", key, roleARN), "InvalidParameterValueException", http.StatusBadRequest, invalid+text)
	}
	refused(t, create("f", "some-key", roleARN), "ValidationException", http.StatusBadRequest, "1 validation error detected: Value 'some-key' at 'kMSKeyArn' failed to satisfy constraint: "+
		"Member must satisfy regular expression pattern: (arn:(aws[a-zA-Z-]*)?:[a-z0-9-.]+:.*)|()")
	refused(t, create("f", w.key, "arn:aws:iam::000000000000:role/none"), "InvalidParameterValueException", http.StatusBadRequest, cannotAssume)
	equal(t, "grants", 0, len(must(w.keys.ListGrants(t.Context(), &kms.ListGrantsInput{KeyId: &w.key}))(t).Grants))
	equal(t, "by a role", nil, create("f", w.key, roleARN))
	_ = create("f", w.key, strings.Replace(roleARN, "function", "function2", 1)) // it is there
	equal(t, "grants", 1, len(must(w.keys.ListGrants(t.Context(), &kms.ListGrantsInput{KeyId: &w.key}))(t).Grants))
}

// Whom the functions' roles were decrypts nothing of them any more: neither after another role
// or key, but for what versions still need, nor after the function.
func TestGrantsOfFormerRoles(t *testing.T) {
	w := newSealedWorld(t)
	first, second := role(t, w.identities, "first", nothing), role(t, w.identities, "second", nothing)
	grantees := func(key string) (names []string) {
		for _, g := range must(w.keys.ListGrants(t.Context(), &kms.ListGrantsInput{KeyId: &key}))(t).Grants {
			names = append(names, strings.TrimPrefix(aws.ToString(g.GranteePrincipal), "arn:aws:iam::"+account+":role/"))
		}
		slices.Sort(names)
		return names
	}
	update := func(change func(in *lambda.UpdateFunctionConfigurationInput)) {
		t.Helper()
		in := &lambda.UpdateFunctionConfigurationInput{FunctionName: new("f")}
		change(in)
		must(w.functions.UpdateFunctionConfiguration(t.Context(), in))(t)
		advance(t, w.endpoint, "1s")
	}
	create := func(role string) {
		createProgram(t, w.functions, "f", func(in *lambda.CreateFunctionInput) {
			in.Role, in.KMSKeyArn, in.Environment = &role, &w.key, withVariable("x")
		})
	}
	create(first)
	createProgram(t, w.functions, "g", func(in *lambda.CreateFunctionInput) {
		in.Role, in.KMSKeyArn, in.Environment = &first, &w.key, withVariable("x")
	})
	// One of a customer's own is not Lambda's.
	must(w.keys.CreateGrant(t.Context(), &kms.CreateGrantInput{
		KeyId: &w.key, Name: new("function " + functionARN("f")), GranteePrincipal: &second, Operations: []kmstypes.GrantOperation{kmstypes.GrantOperationEncrypt},
	}))(t)
	equal(t, "at first", []string{"first", "first", "second"}, grantees(w.key))
	must(w.functions.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: new("f")}))(t)
	update(func(in *lambda.UpdateFunctionConfigurationInput) { in.Role = &second })
	equal(t, "what a version needs stays", []string{"first", "first", "second", "second"}, grantees(w.key))
	equal(t, "of the version", true, w.sees(t, "f:1", "PASSWORD=x"))
	must(w.functions.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: new("f"), Qualifier: new("1")}))(t)
	equal(t, "without the version", []string{"first", "second", "second"}, grantees(w.key))
	equal(t, "of the second role", true, w.sees(t, "f", "PASSWORD=x"))
	update(func(in *lambda.UpdateFunctionConfigurationInput) { in.Role = &first })
	equal(t, "of the first role again", []string{"first", "first", "second"}, grantees(w.key))
	other := *makeKey(t, w.keys, &kms.CreateKeyInput{}).Arn
	update(func(in *lambda.UpdateFunctionConfigurationInput) { in.KMSKeyArn = &other })
	equal(t, "under another key", []string{"first", "second"}, grantees(w.key))
	equal(t, "for the other key", []string{"first"}, grantees(other))
	equal(t, "of the other key", true, w.sees(t, "f", "PASSWORD=x"))
	must(w.functions.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: new("f")}))(t)
	equal(t, "without the function", 0, len(grantees(other)))
	equal(t, "of what is none of its", []string{"first", "second"}, grantees(w.key))
	create(second)
	equal(t, "of another function of the name", true, w.sees(t, "f", "PASSWORD=x"))
	equal(t, "for that", []string{"first", "second", "second"}, grantees(w.key))
}
