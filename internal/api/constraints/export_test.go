package constraints

// Of is the table of a service, as "iam".
func Of(name string) *Table { return load(name) }
