"""The paper on interaction data: one private recommendation for each user.

Train a shallow autoencoder on likes, score every item for each test user, keep the best 500, and pick one of them
privately. There is one module for each step:

    formats/        the published file formats, streamed
    datasets        the known datasets: their files, sizes and sources
    generated       synthetic interactions
    preprocessing   ratings to likes; held-out users
    models, sansa   EASE, built in; SANSA, an extra
    scoring         percentiles in blocks of items, the best 500 in batches of users
    protocol, tuned errors, correlations, ratios, tilts; the tuned mechanism
    gains           the default against noisy max, user by user
    lists           private lists of ten over the ε of the list; list_section shows them
    private         a protocol that is private from end to end
    shares          top share under it: fitted, taught, over all items, and beside the mechanisms it dominates
    private_lists   lists for the price of one pick under it; private_section shows both
    pipeline, alone all of it for one run, resumable, in a process of its own
    results         the small tables that are kept; evidence says which runs verdicts rest on
    live            the tables of the synthetic interactions
    sections        the experiments, with their figures and claims

``python -m experiments.recommender --data DIRECTORY`` runs every dataset in that directory.
"""
