package resource

// The bounds of generated names are IAM's.
const (
	maxHolder = 64  // of roles and users
	maxPolicy = 128 // of managed policies and groups
)

var identityTypes = []Type{
	{
		Name: "AWS::IAM::Role", NameProperty: "RoleName", MaxName: maxHolder, Tags: "Tags", IAM: true, Attributes: []string{"Arn", "RoleId"},
		Properties: map[string]Property{
			"AssumeRolePolicyDocument": prop(Document, required), "Description": prop(String), "ManagedPolicyArns": prop(Strings),
			"MaxSessionDuration": prop(Integer), "Path": prop(String, replaces), "PermissionsBoundary": prop(String), "Policies": prop(List),
			"RoleName": prop(String, replaces), "Tags": prop(List),
		},
	},
	{
		Name: "AWS::IAM::Group", NameProperty: "GroupName", MaxName: maxPolicy, IAM: true, Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"GroupName": prop(String, replaces), "ManagedPolicyArns": prop(Strings), "Path": prop(String), "Policies": prop(List),
		},
	},
	{
		Name: "AWS::IAM::User", NameProperty: "UserName", MaxName: maxHolder, Tags: "Tags", IAM: true, Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"Groups": prop(Strings), "ManagedPolicyArns": prop(Strings), "Path": prop(String), "PermissionsBoundary": prop(String),
			"Policies": prop(List), "Tags": prop(List), "UserName": prop(String, replaces),
		},
	},
	{
		Name: "AWS::IAM::Policy", IAM: true, Attributes: []string{"Id"},
		Properties: map[string]Property{
			"Groups": prop(Strings), "PolicyDocument": prop(Document, required), "PolicyName": prop(String, required), "Roles": prop(Strings),
			"Users": prop(Strings),
		},
	},
	{
		Name: "AWS::IAM::ManagedPolicy", NameProperty: "ManagedPolicyName", MaxName: maxPolicy, IAM: true,
		Attributes: []string{"CreateDate", "DefaultVersionId", "PolicyArn", "PolicyId", "UpdateDate"},
		Properties: map[string]Property{
			"Description": prop(String, replaces), "Groups": prop(Strings), "ManagedPolicyName": prop(String, replaces), "Path": prop(String, replaces),
			"PolicyDocument": prop(Document, required), "Roles": prop(Strings), "Users": prop(Strings),
		},
	},
	{
		Name: "AWS::IAM::AccessKey", IAM: true, Attributes: []string{"SecretAccessKey"},
		Properties: map[string]Property{"Serial": prop(Integer, replaces), "Status": prop(String), "UserName": prop(String, required|replaces)},
	},
	{
		Name: "AWS::IAM::InstanceProfile", NameProperty: "InstanceProfileName", MaxName: maxPolicy, IAM: true, Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"InstanceProfileName": prop(String, replaces), "Path": prop(String, replaces), "Roles": prop(Strings, required),
		},
	},
}
