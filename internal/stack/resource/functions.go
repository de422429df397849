package resource

var lambdaTypes = []Type{
	{
		Name: "AWS::Lambda::Function", NameProperty: "FunctionName", MaxName: 64, Tags: "Tags", Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"Architectures": prop(Strings), "Code": prop(Object, required), "DeadLetterConfig": prop(Object), "Description": prop(String),
			"Environment": prop(Object), "EphemeralStorage": prop(Object), "FileSystemConfigs": prop(List), "FunctionName": prop(String, replaces),
			"Handler": prop(String), "ImageConfig": prop(Object), "KmsKeyArn": prop(String), "Layers": prop(Strings), "LoggingConfig": prop(Object),
			"MemorySize": prop(Integer), "PackageType": prop(String, replaces), "ReservedConcurrentExecutions": prop(Integer),
			"Role": prop(String, required), "Runtime": prop(String), "SnapStart": prop(Object), "Tags": prop(List), "Timeout": prop(Integer),
			"TracingConfig": prop(Object), "VpcConfig": prop(Object),
		},
	},
	{
		Name: "AWS::Lambda::Version", Attributes: []string{"FunctionArn", "Version"},
		Properties: map[string]Property{
			"CodeSha256": prop(String), "Description": prop(String), "FunctionName": prop(String, required|replaces),
		},
	},
	{
		Name: "AWS::Lambda::Alias", Attributes: []string{"AliasArn"},
		Properties: map[string]Property{
			"Description": prop(String), "FunctionName": prop(String, required|replaces), "FunctionVersion": prop(String, required),
			"Name": prop(String, required|replaces), "RoutingConfig": prop(Object),
		},
	},
	{
		Name: "AWS::Lambda::Permission", MaxName: 100, Attributes: []string{"Id"},
		Properties: map[string]Property{
			"Action": prop(String, required|replaces), "EventSourceToken": prop(String, replaces), "FunctionName": prop(String, required|replaces),
			"FunctionUrlAuthType": prop(String, replaces), "InvokedViaFunctionUrl": prop(Boolean, replaces), "Principal": prop(String, required|replaces),
			"PrincipalOrgID": prop(String, replaces), "SourceAccount": prop(String, replaces), "SourceArn": prop(String, replaces),
		},
	},
	{
		Name: "AWS::Lambda::EventSourceMapping", Tags: "Tags", Attributes: []string{"EventSourceMappingArn", "Id"},
		Properties: map[string]Property{
			"BatchSize": prop(Integer), "Enabled": prop(Boolean), "EventSourceArn": prop(String, replaces), "FilterCriteria": prop(Object),
			"FunctionName": prop(String, required), "FunctionResponseTypes": prop(Strings), "MaximumBatchingWindowInSeconds": prop(Integer),
			"ScalingConfig": prop(Object), "Tags": prop(List),
		},
	},
	{
		Name: "AWS::Lambda::LayerVersion", MaxName: 64, Attributes: []string{"LayerVersionArn"},
		Properties: map[string]Property{
			"CompatibleArchitectures": prop(Strings, replaces), "CompatibleRuntimes": prop(Strings, replaces), "Content": prop(Object, required|replaces),
			"Description": prop(String, replaces), "LayerName": prop(String, replaces), "LicenseInfo": prop(String, replaces),
		},
	},
	{
		Name: "AWS::Lambda::LayerVersionPermission", MaxName: 100, Attributes: []string{"Id"},
		Properties: map[string]Property{
			"Action": prop(String, required|replaces), "LayerVersionArn": prop(String, required|replaces), "OrganizationId": prop(String, replaces),
			"Principal": prop(String, required|replaces),
		},
	},
	{
		Name: "AWS::Lambda::Url", Attributes: []string{"FunctionArn", "FunctionUrl"},
		Properties: map[string]Property{
			"AuthType": prop(String, required), "Cors": prop(Object), "InvokeMode": prop(String), "Qualifier": prop(String, replaces),
			"TargetFunctionArn": prop(String, required|replaces),
		},
	},
	{
		Name: "AWS::Lambda::EventInvokeConfig",
		Properties: map[string]Property{
			"DestinationConfig": prop(Object), "FunctionName": prop(String, required|replaces), "MaximumEventAgeInSeconds": prop(Integer),
			"MaximumRetryAttempts": prop(Integer), "Qualifier": prop(String, required|replaces),
		},
	},
}
