// Package iam answers the API of AWS Identity and Access Management.
package iam

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/iam/entity"
)

// The shapes of the operations. Fields are AWS's members. In inputs nil means absent; in
// outputs nil and the empty string are omitted. Operations with equal members share a shape.

type (
	// Empty is an answer without members.
	Empty = entity.Empty
	// Tag is a tag of an entity.
	Tag = entity.Tag
	// TagsOutput is a list of tags.
	TagsOutput = entity.TagsOutput
)

// ListInput is the request of a paginated list, below a path.
type ListInput struct {
	PathPrefix *string
	Marker     *string
	MaxItems   *int
}

// UserInput names a user.
type UserInput struct {
	UserName *string `wire:"required"`
}

// MaybeUserInput names a user; absent: the caller.
type MaybeUserInput struct {
	UserName *string
}

// UserListInput is the request of a list of a user's resources.
type UserListInput struct {
	UserName *string `wire:"required"`
	Marker   *string
	MaxItems *int
}

// MaybeUserListInput is UserListInput; absent: of the caller.
type MaybeUserListInput struct {
	UserName *string
	Marker   *string
	MaxItems *int
}

// CreateUserInput is the request of CreateUser.
type CreateUserInput struct {
	Path                *string
	UserName            *string `wire:"required"`
	PermissionsBoundary *string
	Tags                []Tag
}

// UpdateUserInput is the request of UpdateUser.
type UpdateUserInput struct {
	UserName    *string `wire:"required"`
	NewPath     *string
	NewUserName *string
}

// UserOutput is an answer with a user.
type UserOutput struct{ User *User }

// User is a user.
type User struct {
	Path, UserName, UserId, Arn string
	CreateDate                  api.Time
	PermissionsBoundary         *AttachedBoundary
	Tags                        []Tag
}

// AttachedBoundary is the permissions boundary of a user or role.
type AttachedBoundary struct{ PermissionsBoundaryType, PermissionsBoundaryArn string }

// ListUsersOutput is the answer of ListUsers.
type ListUsersOutput struct {
	Users       []User
	IsTruncated bool
	Marker      string
}

// TagUserInput is the request of TagUser.
type TagUserInput struct {
	UserName *string `wire:"required"`
	Tags     []Tag   `wire:"required"`
}

// UntagUserInput is the request of UntagUser.
type UntagUserInput struct {
	UserName *string  `wire:"required"`
	TagKeys  []string `wire:"required"`
}

// GroupInput names a group.
type GroupInput struct {
	GroupName *string `wire:"required"`
}

// GroupListInput is the request of a list of a group's resources.
type GroupListInput struct {
	GroupName *string `wire:"required"`
	Marker    *string
	MaxItems  *int
}

// CreateGroupInput is the request of CreateGroup.
type CreateGroupInput struct {
	Path      *string
	GroupName *string `wire:"required"`
}

// UpdateGroupInput is the request of UpdateGroup.
type UpdateGroupInput struct {
	GroupName    *string `wire:"required"`
	NewPath      *string
	NewGroupName *string
}

// MemberInput names a group and a user.
type MemberInput struct {
	GroupName *string `wire:"required"`
	UserName  *string `wire:"required"`
}

// Group is a group.
type Group struct {
	Path, GroupName, GroupId, Arn string
	CreateDate                    api.Time
}

// GroupOutput is an answer with a group.
type GroupOutput struct{ Group *Group }

// GetGroupOutput is the answer of GetGroup.
type GetGroupOutput struct {
	Group       *Group
	Users       []User
	IsTruncated bool
	Marker      string
}

// GroupsOutput is a list of groups.
type GroupsOutput struct {
	Groups      []Group
	IsTruncated bool
	Marker      string
}

// CreateAccessKeyOutput is the answer of CreateAccessKey.
type CreateAccessKeyOutput struct{ AccessKey *AccessKey }

// AccessKey is a new access key, with its secret.
type AccessKey struct {
	UserName, AccessKeyId, Status, SecretAccessKey string
	CreateDate                                     api.Time
}

// AccessKeyInput names an access key of a user; absent: of the caller.
type AccessKeyInput struct {
	UserName    *string
	AccessKeyId *string `wire:"required"`
}

// UpdateAccessKeyInput is the request of UpdateAccessKey.
type UpdateAccessKeyInput struct {
	UserName    *string
	AccessKeyId *string `wire:"required"`
	Status      *string `wire:"required"`
}

// ListAccessKeysOutput is the answer of ListAccessKeys.
type ListAccessKeysOutput struct {
	AccessKeyMetadata []AccessKeyMetadata
	IsTruncated       bool
	Marker            string
}

// AccessKeyMetadata is an access key of a list.
type AccessKeyMetadata struct {
	UserName, AccessKeyId, Status string
	CreateDate                    api.Time
}

// AccessKeyIDInput is the request of GetAccessKeyLastUsed.
type AccessKeyIDInput struct {
	AccessKeyId *string `wire:"required"`
}

// GetAccessKeyLastUsedOutput is the answer of GetAccessKeyLastUsed.
type GetAccessKeyLastUsedOutput struct {
	UserName          string
	AccessKeyLastUsed *AccessKeyLastUsed
}

// AccessKeyLastUsed is the latest use of an access key.
type AccessKeyLastUsed struct {
	LastUsedDate        *api.Time
	ServiceName, Region string
}

// VirtualMFADevicesInput is the request of ListVirtualMFADevices.
type VirtualMFADevicesInput struct {
	AssignmentStatus *string
	Marker           *string
	MaxItems         *int
}
