package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/account"
)

func (c *command) usersCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "admin",
		Short: "manage administrators of the server",
		Example: `  parley admin create anna@example.com
  parley admin list
  parley admin reset-password anna@example.com`,
	}, c.usersCreate(), c.usersList(), c.usersReset())
}

func (c *command) usersCreate() *cobra.Command {
	var name, file string
	cmd := &cobra.Command{
		Use:   "create EMAIL",
		Short: "create an administrator with a password from a prompt, stdin or a file",
		Example: `  parley admin create anna@example.com --name "Anna Lindqvist"
  parley admin create anna@example.com < password.txt`,
		Args: exactArguments("EMAIL"),
		RunE: c.onDatabase(func(ctx context.Context, a *admin, args []string) error {
			password, err := c.newPassword(ctx, args[0], file)
			if err != nil {
				return err
			}
			u, err := a.Accounts.Create(ctx, account.NewUser{Email: args[0], Name: name, Password: password, Admin: true})
			if err != nil {
				return err
			}
			return c.printDone(shownUser(u), "Created the administrator %s.", u.Email)
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the user")
	cmd.Flags().StringVar(&file, "file", "", "read the password from a file")
	return cmd
}

// newPassword reads a password and checks it.
func (c *command) newPassword(ctx context.Context, email, file string) (string, error) {
	value, err := c.hiddenInput(ctx, "Password of "+email, file)
	if err != nil {
		return "", err
	}
	password := string(value.Reveal())
	return password, account.CheckPassword(password, email)
}

// userRow is a user in --json.
type userRow struct {
	ID       string `json:"user_id"`
	Email    string `json:"email"`
	Name     string `json:"name"`
	Admin    bool   `json:"is_admin"`
	Disabled bool   `json:"disabled"`
}

func shownUser(u account.User) userRow { return userRow{u.ID, u.Email, u.Name, u.Admin, u.Disabled} }

func (c *command) usersList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list administrators",
		Example: `  parley admin list
  parley admin list --json`,
		Args: nothing,
		RunE: c.onDatabase(func(ctx context.Context, a *admin, _ []string) error {
			all, err := a.Accounts.Users(ctx)
			if err != nil {
				return err
			}
			var rows []userRow
			var users []account.User
			for _, u := range all {
				if u.Admin {
					rows, users = append(rows, shownUser(u)), append(users, u)
				}
			}
			return c.printList(rows, len(rows), "The server has no administrator. Create one: parley admin create EMAIL",
				[]string{"EMAIL", "NAME", "STATUS", "CREATED", "LAST SIGN-IN"}, func(i int) []string {
					u := users[i]
					status := "active"
					switch {
					case u.Disabled:
						status = "disabled"
					case !u.HasPassword && !u.OIDC:
						status = "no password"
					}
					return []string{u.Email, u.Name, status, formatDay(&u.CreatedAt), formatDay(u.LastLogin)}
				})
		}),
	}
}

func (c *command) usersReset() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "reset-password EMAIL",
		Short: "set a user's password from a prompt, stdin or a file, and sign the user out everywhere",
		Example: `  parley admin reset-password anna@example.com
  parley admin reset-password anna@example.com < password.txt`,
		Args: exactArguments("EMAIL"),
		RunE: c.onDatabase(func(ctx context.Context, a *admin, args []string) error {
			u, err := a.Accounts.User(ctx, args[0])
			if err != nil {
				return err
			}
			password, err := c.newPassword(ctx, u.Email, file)
			if err != nil {
				return err
			}
			if err := a.Accounts.SetPassword(ctx, u.ID, password, ""); err != nil {
				return err
			}
			return c.printDone(shownUser(u), "Set the password of %s. The user is signed out everywhere.", u.Email)
		}),
	}
	cmd.Flags().StringVar(&file, "file", "", "read the password from a file")
	return cmd
}
