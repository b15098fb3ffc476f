"""Cross-domain similarities and private moments on Spark: the results of one machine, for ratings that one machine
cannot hold.

Spark needs its own environment (``pip install -c spark-constraints.txt 'tacit[spark]'``, Java 17 or newer); nothing
else in tacit imports it. Every function takes the frames of an existing session, on any cluster. No rows reach the
driver: it sees counts, sums and what is written to Parquet.
"""
