"""The app: `streamlit run streamlit_app.py`.

Streamlit reads this file twice over. Each visitor's session runs it as a script and gets the shell: page
settings and the menu. Before that, `streamlit run` imports it once for `app`, which is where a server can be
prepared before the first visitor comes (pages/shared/server.py says for what).
"""

import streamlit as st

from pages.shared import server

if __name__ == "__main__":
    st.set_page_config(page_title="Crossover", page_icon="⚖️", layout="wide")
    with server.IMPORTS:  # the first visitor may come while the server imports them
        from pages.shared import layout, permits
        from pages.shared.layout import run_page
    permits.frame()
    run_page(st.navigation(layout.menu(), position="hidden"))
else:
    app = st.App(__file__, lifespan=server.lifespan, middleware=server.MIDDLEWARE, routes=server.ROUTES)
