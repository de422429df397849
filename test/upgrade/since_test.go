package upgrade_test

// added are members that answers have got since the versions that wrote the
// directories, by AWS's example.
var added = map[string]bool{"RuntimeVersionConfig": true, "FunctionResponseTypes": true, "MaximumBatchingWindowInSeconds": true}

// asThen takes out of what is answered now the added members that the earlier version
// did not have there.
func asThen(then, now any) any {
	switch now := now.(type) {
	case map[string]any:
		before, _ := then.(map[string]any)
		for name, value := range now {
			if _, ok := before[name]; !ok && added[name] {
				delete(now, name)
				continue
			}
			now[name] = asThen(before[name], value)
		}
	case []any:
		before, _ := then.([]any)
		for i := range min(len(now), len(before)) {
			now[i] = asThen(before[i], now[i])
		}
	}
	return now
}
