package lambda

import "godwit.dev/godwit/internal/api/lambda/request"

// The model's patterns that package request does not have.
var (
	rolePattern        = request.Compile(`arn:(aws[a-zA-Z-]*)?:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+`)
	handlerPattern     = request.Compile(`[^\s]+`)
	resourcePattern    = request.Compile(`(arn:(aws[a-zA-Z-]*)?:[a-z0-9-.]+:.*)|()`)
	variablePattern    = request.Compile(`[a-zA-Z]([a-zA-Z0-9_])+`)
	logGroupPattern    = request.Compile(`[\.\-_/#A-Za-z0-9]+`)
	regionPattern      = request.Compile(`ALL|[a-z]{2}(-gov)?-[a-z]+-\d{1}`)
	versionPattern     = request.Compile(`(\$LATEST(\.PUBLISHED)?|[0-9]+)`)
	aliasPattern       = request.Compile(`([a-zA-Z0-9-_]+)`)
	numberPattern      = request.Compile(`[0-9]+`)
	statementPattern   = request.Compile(`([a-zA-Z0-9-_]+)`)
	namespacedPattern  = request.Compile(`([a-zA-Z0-9-_.]+)`)
	actionPattern      = request.Compile(`(lambda:[*]|lambda:[a-zA-Z]+|[*])`)
	principalPattern   = request.Compile(`[^\s]+`)
	tokenPattern       = request.Compile(`[a-zA-Z0-9._\-]+`)
	organizationRegexp = request.Compile(`o-[a-z0-9]{10,32}`)
	signingPattern     = request.Compile(`arn:(aws[a-zA-Z-]*)?:lambda:[a-z]{2}((-gov)|(-iso(b?)))?-[a-z]+-\d{1}:\d{12}:code-signing-config:csc-[a-z0-9]{17}`)
	taggablePattern    = request.Compile(`arn:(aws[a-zA-Z-]*):lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:(function:[a-zA-Z0-9-_]+(:(\$LATEST|[a-zA-Z0-9-_]+))?|layer:([a-zA-Z0-9-_]+)|code-signing-config:csc-[a-z0-9]{17}|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|capacity-provider:[a-zA-Z0-9-_]+)`)
)
