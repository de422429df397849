package resource

var kmsTypes = []Type{
	{ // the properties of a key's creation cannot change, and do not replace it either: its service refuses that
		Name: "AWS::KMS::Key", Tags: "Tags", Attributes: []string{"Arn", "KeyId"},
		Properties: map[string]Property{
			"BypassPolicyLockoutSafetyCheck": prop(Boolean), "Description": prop(String), "EnableKeyRotation": prop(Boolean), "Enabled": prop(Boolean),
			"KeyPolicy": prop(Document), "KeySpec": prop(String), "KeyUsage": prop(String), "MultiRegion": prop(Boolean), "Origin": prop(String),
			"PendingWindowInDays": prop(Integer), "RotationPeriodInDays": prop(Integer), "Tags": prop(List),
		},
	},
	{
		Name: "AWS::KMS::Alias", NameProperty: "AliasName",
		Properties: map[string]Property{"AliasName": prop(String, required|replaces), "TargetKeyId": prop(String, required)},
	},
}
