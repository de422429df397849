package template

import "godwit.dev/godwit/internal/fault"

// The errors of a template's form, with the fields of each.
var (
	ErrSections             = fault.NewRule(fault.ValidationFailed, "template: no such sections")              // their names
	ErrVersion              = fault.NewRule(fault.ValidationFailed, "template: no such version of the format") // the version
	ErrDescription          = fault.NewRule(fault.ValidationFailed, "template: the description is too long")   // the limit in bytes
	ErrTransforms           = fault.NewRule(fault.ValidationFailed, "template: a transform without a name")
	ErrNoTransform          = fault.NewRule(fault.ValidationFailed, "template: no such transform")                            // its name
	ErrSection              = fault.NewRule(fault.ValidationFailed, "template: the section is no map")                        // its name, twice
	ErrTooMany              = fault.NewRule(fault.ValidationFailed, "template: the section has too many members")             // what they are, how many, the limit
	ErrNoMap                = fault.NewRule(fault.ValidationFailed, "template: it is no map")                                 // its path
	ErrParameterName        = fault.NewRule(fault.ValidationFailed, "template: the name of a parameter has other characters") // the name
	ErrParameter            = fault.NewRule(fault.ValidationFailed, "template: the parameter is no map")
	ErrRepetitions          = fault.NewRule(fault.ValidationFailed, "template: the patterns of the parameters repeat too much")
	ErrMappingName          = fault.NewRule(fault.ValidationFailed, "template: the name of a mapping has other characters")             // the name
	ErrMapping              = fault.NewRule(fault.ValidationFailed, "template: the mapping, or what it has, is no map")                 // its name
	ErrMappingAttributeName = fault.NewRule(fault.ValidationFailed, "template: the name of a mapping's attribute has other characters") // the name
	ErrMappingAttribute     = fault.NewRule(fault.ValidationFailed, "template: a mapping's attribute is neither text nor list")
	ErrConditions           = fault.NewRule(fault.ValidationFailed, "template: the condition has no truth value")
	ErrNoResources          = fault.NewRule(fault.ValidationFailed, "template: it has no resources")
	ErrResourceName         = fault.NewRule(fault.ValidationFailed, "template: the name of a resource has other characters") // the name
	ErrResourceNameLength   = fault.NewRule(fault.ValidationFailed, "template: the name of a resource is too long")          // the name, the limit in bytes
	ErrResource             = fault.NewRule(fault.ValidationFailed, "template: the resource is no map")                      // its path
	ErrNoType               = fault.NewRule(fault.ValidationFailed, "template: the resource has no type")                    // its path
	ErrTypeText             = fault.NewRule(fault.ValidationFailed, "template: the type is no text")                         // its path
	ErrTypes                = fault.NewRule(fault.ValidationFailed, "template: no such types")                               // their names
	ErrResourceProperty     = fault.NewRule(fault.ValidationFailed, "template: resources have no such member")               // its name
	ErrDependsOn            = fault.NewRule(fault.ValidationFailed, "template: the dependencies are neither text nor list")
	ErrDependency           = fault.NewRule(fault.ValidationFailed, "template: a dependency is no text")
	ErrPolicy               = fault.NewRule(fault.ValidationFailed, "template: no such policy of deletion")                 // the member, the policy, the resource
	ErrOutputName           = fault.NewRule(fault.ValidationFailed, "template: the name of an output has other characters") // the name
	ErrOutput               = fault.NewRule(fault.ValidationFailed, "template: the output has no value")
	ErrOutputProperty       = fault.NewRule(fault.ValidationFailed, "template: outputs have no such member") // its name
	ErrOutputText           = fault.NewRule(fault.ValidationFailed, "template: the value of an output is no text")
	ErrExport               = fault.NewRule(fault.ValidationFailed, "template: the name of an export is not valid") // the output
	ErrNoAssertions         = fault.NewRule(fault.ValidationFailed, "template: the rule asserts nothing")
	ErrNoAssert             = fault.NewRule(fault.ValidationFailed, "template: the assertion asserts nothing")
	ErrRuleValue            = fault.NewRule(fault.ValidationFailed, "template: the rule has no truth value")
)

// The errors of what a template refers to, with the fields of each.
var (
	ErrNamesTwice          = fault.NewRule(fault.ValidationFailed, "template: a resource and a parameter have the same name") // the names
	ErrUnresolved          = fault.NewRule(fault.ValidationFailed, "template: no such resources, or parameters")              // their names, the section
	ErrTooEarly            = fault.NewRule(fault.ValidationFailed, "template: resources where there are none yet")            // their names, the section
	ErrNotParameter        = fault.NewRule(fault.ValidationFailed, "template: a resource where only parameters can be")       // its name
	ErrNoResource          = fault.NewRule(fault.ValidationFailed, "template: no such resource to get an attribute of")       // its name
	ErrAttribute           = fault.NewRule(fault.ValidationFailed, "template: the resource has no such attribute")            // its name, the attribute
	ErrSubAttribute        = fault.NewRule(fault.ValidationFailed, "template: no such resource or attribute in a text")       // the resource, the attribute
	ErrNoCondition         = fault.NewRule(fault.ValidationFailed, "template: no such condition")                             // its name, the function
	ErrUnresolvedCondition = fault.NewRule(fault.ValidationFailed, "template: no such condition of a resource or an output")  // its name, the section
	ErrCircularConditions  = fault.NewRule(fault.ValidationFailed, "template: conditions depend on each other")               // two of them
	ErrCircular            = fault.NewRule(fault.ValidationFailed, "template: resources depend on each other")                // their names
	ErrNoMapping           = fault.NewRule(fault.ValidationFailed, "template: no such mapping")                               // its name
	ErrNoMappingKey        = fault.NewRule(fault.ValidationFailed, "template: the mapping has no such keys")                  // the mapping, the keys
)

// The errors of what a template is given, with the fields of each.
var (
	ErrNoPrevious   = fault.NewRule(fault.ValidationFailed, "template: the parameter has no value to keep")  // its name
	ErrNoParameters = fault.NewRule(fault.ValidationFailed, "template: the template has no such parameters") // their names
	ErrNoValues     = fault.NewRule(fault.ValidationFailed, "template: parameters without a value")          // their names
	ErrNotStored    = fault.NewRule(fault.ValidationFailed, "template: not in the parameter store")          // the names
	ErrDynamic      = fault.NewRule(fault.ValidationFailed, "template: no such store of dynamic references") // the store, the reference
	ErrRule         = fault.NewRule(fault.ValidationFailed, "template: a rule does not hold")                // its name
	ErrRuleSays     = fault.NewRule(fault.ValidationFailed, "template: a rule that says why does not hold")  // its name, what it says
)

// The errors of functions, with the fields of each.
var (
	ErrFunction    = fault.NewRule(fault.ValidationFailed, "template: no such function")                         // its name
	ErrOutside     = fault.NewRule(fault.ValidationFailed, "template: a function of conditions outside of them") // its name
	ErrRef         = fault.NewRule(fault.ValidationFailed, "template: Ref of no name")
	ErrCondition   = fault.NewRule(fault.ValidationFailed, "template: Condition of no name")
	ErrGetAtt      = fault.NewRule(fault.ValidationFailed, "template: Fn::GetAtt of other than two names")
	ErrSub         = fault.NewRule(fault.ValidationFailed, "template: Fn::Sub of other than a text and a map")
	ErrSubKey      = fault.NewRule(fault.ValidationFailed, "template: the name of a value of Fn::Sub has other characters")
	ErrSubVariable = fault.NewRule(fault.ValidationFailed, "template: the name of a variable of Fn::Sub has other characters")
	ErrSubValue    = fault.NewRule(fault.ValidationFailed, "template: a value of Fn::Sub is no text")
	ErrSubText     = fault.NewRule(fault.ValidationFailed, "template: a variable of Fn::Sub is no text") // the variable
	ErrJoin        = fault.NewRule(fault.ValidationFailed, "template: Fn::Join of other than a text and texts")
	ErrSplit       = fault.NewRule(fault.ValidationFailed, "template: Fn::Split of other than two texts")
	ErrIndex       = fault.NewRule(fault.ValidationFailed, "template: Fn::Select without an index")
	ErrSelect      = fault.NewRule(fault.ValidationFailed, "template: Fn::Select of other than an index and a list")
	ErrNoElement   = fault.NewRule(fault.ValidationFailed, "template: Fn::Select of an element that is not there") // its index
	ErrIf          = fault.NewRule(fault.ValidationFailed, "template: Fn::If of other than three elements")
	ErrIfCondition = fault.NewRule(fault.ValidationFailed, "template: Fn::If without a condition")
	ErrEquals      = fault.NewRule(fault.ValidationFailed, "template: Fn::Equals of other than two elements")
	ErrNot         = fault.NewRule(fault.ValidationFailed, "template: Fn::Not of other than one element")
	ErrNotValue    = fault.NewRule(fault.ValidationFailed, "template: Fn::Not of no truth value")
	ErrOperands    = fault.NewRule(fault.ValidationFailed, "template: Fn::And or Fn::Or of other than truth values") // the function
	ErrFindInMap   = fault.NewRule(fault.ValidationFailed, "template: Fn::FindInMap of other than three names")
	ErrBase64      = fault.NewRule(fault.ValidationFailed, "template: Fn::Base64 of no text")
	ErrGetAZs      = fault.NewRule(fault.ValidationFailed, "template: Fn::GetAZs of no text")
	ErrCIDR        = fault.NewRule(fault.ValidationFailed, "template: Fn::Cidr of other than a block, a count and a number of bits")
	ErrCIDRBlock   = fault.NewRule(fault.ValidationFailed, "template: Fn::Cidr of no block")                  // what it is given
	ErrCIDRSize    = fault.NewRule(fault.ValidationFailed, "template: Fn::Cidr of a block that is too small") // the block, the count, the bits
	ErrImport      = fault.NewRule(fault.ValidationFailed, "template: the name of an import depends on what comes later")
	ErrLength      = fault.NewRule(fault.ValidationFailed, "template: Fn::Length of no list")
	ErrToJSON      = fault.NewRule(fault.ValidationFailed, "template: Fn::ToJsonString of a scalar")
	ErrTwoElements = fault.NewRule(fault.ValidationFailed, "template: a function of rules of other than two elements")     // its name
	ErrFirstList   = fault.NewRule(fault.ValidationFailed, "template: a function of rules whose first element is no list") // its name
	ErrTooMuch     = fault.NewRule(fault.ValidationFailed, "template: the functions make too much")                        // the limit in bytes
)

// The errors of transforms, with the fields of each.
var (
	ErrLoop           = fault.NewRule(fault.ValidationFailed, "template: the loop is not of three parts")                         // its member
	ErrLoopDepth      = fault.NewRule(fault.ValidationFailed, "template: loops are nested too deep")                              // the limit
	ErrLoopAround     = fault.NewRule(fault.ValidationFailed, "template: a loop around it has the identifier")                    // the identifier
	ErrLoopIdentifier = fault.NewRule(fault.ValidationFailed, "template: the identifier has other characters, or is a parameter") // the identifier
	ErrLoopList       = fault.NewRule(fault.ValidationFailed, "template: the loop is over no list")                               // its member
	ErrLoopTexts      = fault.NewRule(fault.ValidationFailed, "template: the loop is over other than texts")                      // its member
	ErrLoopTwice      = fault.NewRule(fault.ValidationFailed, "template: a loop makes a member twice")                            // the member
	ErrLoopSize       = fault.NewRule(fault.ValidationFailed, "template: loops make too much")                                    // the limits in values, in bytes
	ErrExpanded       = fault.NewRule(fault.ValidationFailed, "template: transforms make too much")                               // the limit in values
)

// The reasons why a template needs capabilities, with the fields of each.
var (
	ErrCapabilities          = fault.NewRule(fault.InsufficientCapabilities, "template: resources change permissions") // their types
	ErrTransformCapabilities = fault.NewRule(fault.InsufficientCapabilities, "template: transforms make resources")    // their names
)
