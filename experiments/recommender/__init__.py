"""The paper on interaction data: one private recommendation for each user.

Train a shallow autoencoder on who liked what, score every item for each test user, keep the best 500, and pick
one of them privately. From files to verdicts, one module for each step:

    formats/        the published file formats, streamed
    datasets        which sets are known, how many rows they should have, where they come from
    generated       a set made from nothing, for machines without data
    preprocessing   ratings to likes; who is held out
    models, sansa   EASE, built in; SANSA, an extra
    scoring         percentiles in blocks of items, the best 500 in batches of users
    protocol        errors, correlations, ratios, tilts
    private         the same with everything accounted for
    pipeline        all of it for one run, resumable
    results         the small tables that are kept
    figures, claims what the report shows and what it judges

``python -m experiments.recommender --data DIRECTORY`` runs every set that is found there.
"""
