package policy

// Keys is a Context of given values, by condition key in lower case.
type Keys map[string][]string

// Values implements Context.
func (k Keys) Values(key string) []string { return k[key] }
