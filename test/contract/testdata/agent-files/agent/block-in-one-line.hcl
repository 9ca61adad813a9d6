policy { source "file" {} }
