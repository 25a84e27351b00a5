# plain: open
# process: undone
# namespace: undone
from escape import *
def link():
    os.makedirs("evil")
    write("evil/commondir", "../evil")
    os.rename(".git/worktrees/tree", ".git/worktrees/moved")
    os.symlink("../../evil", ".git/worktrees/tree")
attempt(link)
