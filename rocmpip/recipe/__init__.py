"""Recipes: decode, validate, layer, match ``when``, explain. Pure but for reading the files it is given.

book = book.load_book([("shipped", book.shipped_folder()), ("user", folder)])
resolved = book.resolve("flash-attn", "2.8.3.post2", RecipeContext(gfx=("gfx942",), rocm=parse_rocm("7.2"), torch="2.9.1"))
env, config_settings, notes = override.apply_user(resolved, os.environ, ())
"""
