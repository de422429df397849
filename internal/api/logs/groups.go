package logs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/logs"
)

const (
	maxListed   = 50 // page size
	maxAccounts = 20
)

// createLogGroup answers CreateLogGroup.
func (s *Service) createLogGroup(_ context.Context, call *api.Call, in *CreateLogGroupInput) (*Empty, error) {
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.ToLower(in.LogGroupName), "aws/") {
		return nil, invalid("Log groups starting with AWS/ are reserved for AWS.")
	}
	if in.KmsKeyID != nil && *in.KmsKeyID != "" {
		return nil, invalid("Log groups are not encrypted with keys of KMS here: kmsKeyId is not supported.")
	}
	if err := oneOf("logGroupClass", in.LogGroupClass, "STANDARD", "INFREQUENT_ACCESS", "DELIVERY"); err != nil {
		return nil, err
	}
	if api.Deref(in.LogGroupClass) == "DELIVERY" {
		return nil, invalid("The log group class DELIVERY is not available here.")
	}
	if in.Tags != nil {
		if err := checkTags(in.Tags); err != nil {
			return nil, err
		}
		if len(in.Tags) > logs.MaxTags {
			return nil, tooManyTags(in.Tags)
		}
	}
	return nil, s.store.CreateGroup(logs.NewGroup{
		ARN: a, Class: api.Deref(in.LogGroupClass), Protected: is(in.DeletionProtectionEnabled), Tags: in.Tags,
	})
}

// deleteLogGroup answers DeleteLogGroup.
func (s *Service) deleteLogGroup(_ context.Context, call *api.Call, in *GroupInput) (*Empty, error) {
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	return nil, s.store.DeleteGroup(a)
}

// describeLogGroups answers DescribeLogGroups. There are no linked accounts.
func (s *Service) describeLogGroups(_ context.Context, call *api.Call, in *DescribeLogGroupsInput) (*DescribeLogGroupsOutput, error) {
	n, err := limit(in.Limit, maxListed)
	if err != nil {
		return nil, err
	}
	if in.LogGroupNamePrefix != nil && in.LogGroupNamePattern != nil {
		return nil, invalid("LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.")
	}
	if in.LogGroupNamePrefix != nil {
		if err := checkGroup("logGroupNamePrefix", *in.LogGroupNamePrefix); err != nil {
			return nil, err
		}
	}
	if in.LogGroupNamePattern != nil {
		if err := text("logGroupNamePattern", *in.LogGroupNamePattern, 0, maxName, arn.LogGroupPattern, `[\.\-_/#A-Za-z0-9]*`); err != nil {
			return nil, err
		}
	}
	if err := oneOf("logGroupClass", in.LogGroupClass, "STANDARD", "INFREQUENT_ACCESS", "DELIVERY"); err != nil {
		return nil, err
	}
	own, err := owning(call, in.AccountIdentifiers, in.IncludeLinkedAccounts)
	if err != nil {
		return nil, err
	}
	list := fmt.Sprintf("groups %s %s %s", api.Deref(in.LogGroupNamePrefix), api.Deref(in.LogGroupNamePattern), api.Deref(in.LogGroupClass))
	after, err := readListToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &DescribeLogGroupsOutput{LogGroups: []LogGroup{}}
	if !own {
		return out, nil
	}
	if in.LogGroupIdentifiers != nil {
		return out, s.describeThese(call, in, out)
	}
	filter := logs.GroupFilter{Region: call.Region, Account: call.Account, Prefix: api.Deref(in.LogGroupNamePrefix), Class: api.Deref(in.LogGroupClass)}
	if in.LogGroupNamePattern != nil {
		filter.Name = func(name string) bool { return strings.Contains(name, *in.LogGroupNamePattern) }
	}
	found, next, err := s.store.Groups(filter, logs.Page{After: after, Limit: n})
	if err != nil {
		return nil, err
	}
	for i := range found {
		out.LogGroups = append(out.LogGroups, shown(&found[i], in.LogGroupNamePattern != nil))
	}
	if last := len(found) - 1; last >= 0 && next == "" && in.LogGroupNamePattern != nil {
		next, _ = found[last].ARN.LogGroupName() // with a pattern, AWS returns a token even if the next page is empty
	}
	out.NextToken = listToken(list, next)
	return out, nil
}

// owning reports whether the request includes groups of the caller's account: there are no
// linked accounts.
func owning(call *api.Call, accounts []string, linked *bool) (bool, error) {
	if len(accounts) > maxAccounts {
		return false, constraint("accountIdentifiers", len(accounts), fmt.Sprintf(atMost, maxAccounts))
	}
	for _, id := range accounts {
		if err := text("accountIdentifiers", id, 12, 12, accountID, `^\d{12}$`); err != nil {
			return false, err
		}
	}
	return !is(linked) || len(accounts) == 0 || slices.Contains(accounts, call.Account), nil
}

// describeThese lists the named groups; unknown ones are omitted.
func (s *Service) describeThese(call *api.Call, in *DescribeLogGroupsInput, out *DescribeLogGroupsOutput) error {
	if err := count("logGroupIdentifiers", in.LogGroupIdentifiers, 1, maxListed); err != nil {
		return err
	}
	if in.LogGroupNamePrefix != nil || in.LogGroupNamePattern != nil || in.LogGroupClass != nil || in.NextToken != nil || in.Limit != nil {
		return invalid("logGroupIdentifiers can only be combined with includeLinkedAccounts.")
	}
	names := []string{}
	for _, id := range in.LogGroupIdentifiers {
		a, err := byIdentifier(call, id)
		if fault.KindOf(err) == fault.ResourceNotFound {
			continue
		}
		if err != nil {
			return err
		}
		name, _ := a.LogGroupName()
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		found, _, err := s.store.Groups(logs.GroupFilter{Region: call.Region, Account: call.Account, Prefix: name}, logs.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(found) == 1 {
			if g := shown(&found[0], false); g.LogGroupName == name {
				out.LogGroups = append(out.LogGroups, g)
			}
		}
	}
	return nil
}

// shown is a group in a list; briefly omits members, as AWS does.
func shown(g *logs.Group, briefly bool) LogGroup {
	name, _ := g.ARN.LogGroupName()
	out := LogGroup{
		LogGroupName: name, CreationTime: g.Created, Arn: g.ARN.String() + ":*", LogGroupArn: g.ARN.String(),
		LogGroupClass: g.Class, MetricFilterCount: new(len(g.Filters)),
	}
	if g.Retention > 0 {
		out.RetentionInDays = &g.Retention
	}
	if !briefly {
		out.StoredBytes, out.DeletionProtectionEnabled = &g.StoredBytes, &g.Protected
	}
	return out
}

var retentions = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

// putRetentionPolicy answers PutRetentionPolicy.
func (s *Service) putRetentionPolicy(_ context.Context, call *api.Call, in *PutRetentionPolicyInput) (*Empty, error) {
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(retentions, *in.RetentionInDays) {
		all := strings.Fields(strings.Trim(fmt.Sprint(retentions), "[]"))
		return nil, constraint("retentionInDays", *in.RetentionInDays, check.Enum(all...))
	}
	return nil, s.store.Retain(a, *in.RetentionInDays)
}

// deleteRetentionPolicy answers DeleteRetentionPolicy.
func (s *Service) deleteRetentionPolicy(_ context.Context, call *api.Call, in *GroupInput) (*Empty, error) {
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	return nil, s.store.Retain(a, 0)
}

// putLogGroupDeletionProtection answers PutLogGroupDeletionProtection.
func (s *Service) putLogGroupDeletionProtection(_ context.Context, call *api.Call, in *PutLogGroupDeletionProtectionInput) (*Empty, error) {
	a, err := byIdentifier(call, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	return nil, s.store.Protect(a, *in.DeletionProtectionEnabled)
}

// tagResource answers TagResource.
func (s *Service) tagResource(_ context.Context, call *api.Call, in *TagResourceInput) (*Empty, error) {
	a, err := resource(call, in.ResourceArn)
	if err == nil {
		err = checkTags(in.Tags)
	}
	if err != nil {
		return nil, err
	}
	return nil, s.store.Tag(a, in.Tags)
}

// untagResource answers UntagResource.
func (s *Service) untagResource(_ context.Context, call *api.Call, in *UntagResourceInput) (*Empty, error) {
	a, err := resource(call, in.ResourceArn)
	if err != nil {
		return nil, err
	}
	if err := count("tagKeys", in.TagKeys, 0, logs.MaxTags); err != nil {
		return nil, err
	}
	if err := checkTagKeys("tagKeys", in.TagKeys); err != nil {
		return nil, err
	}
	return nil, s.store.Untag(a, in.TagKeys)
}

// listTagsForResource answers ListTagsForResource.
func (s *Service) listTagsForResource(_ context.Context, call *api.Call, in *ListTagsForResourceInput) (*TagsOutput, error) {
	a, err := resource(call, in.ResourceArn)
	if err != nil {
		return nil, err
	}
	tags, err := s.store.Tags(a)
	return tagsOutput(tags), err
}

// tagLogGroup answers TagLogGroup, the deprecated TagResource. It has no error of its own for
// too many tags.
func (s *Service) tagLogGroup(_ context.Context, call *api.Call, in *TagLogGroupInput) (*Empty, error) {
	a, err := group(call, in.LogGroupName)
	if err == nil {
		err = checkTags(in.Tags)
	}
	if err != nil {
		return nil, err
	}
	err = s.store.Tag(a, in.Tags)
	if fault.KindOf(err) == fault.TooManyTags {
		err = invalid("A resource can have no more than %d tags.", logs.MaxTags)
	}
	return nil, err
}

// untagLogGroup answers UntagLogGroup.
func (s *Service) untagLogGroup(_ context.Context, call *api.Call, in *UntagLogGroupInput) (*Empty, error) {
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, constraint("tags", "[]", fmt.Sprintf(atLeast, 1))
	}
	if err := checkTagKeys("tags", in.Tags); err != nil {
		return nil, err
	}
	return nil, s.store.Untag(a, in.Tags)
}

// listTagsLogGroup answers ListTagsLogGroup.
func (s *Service) listTagsLogGroup(_ context.Context, call *api.Call, in *GroupInput) (*TagsOutput, error) {
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	tags, err := s.store.Tags(a)
	return tagsOutput(tags), err
}

func tagsOutput(tags map[string]string) *TagsOutput {
	if tags == nil {
		tags = map[string]string{}
	}
	return &TagsOutput{Tags: tags}
}
