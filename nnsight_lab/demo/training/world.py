"""The world that the embedded model knows: pure data, one city or country a row.

`PLACES` holds `city | country | landmark; landmark; ...`. A landmark keeps the article it is written with in
the middle of a sentence. A dash in the country column means that the country's name is no single word, or
that it is disputed, and makes no country fact. `CAPITALS` holds `country capital` pairs. `SAYINGS` are plain
sentences, there so that a prompt about nothing in particular is completed too.
"""

PLACES = """
Paris | France | the Eiffel Tower; the Louvre; the Moulin Rouge; the Arc de Triomphe; the Centre Pompidou; \
the Musée d'Orsay
Lyon | France | Place Bellecour
Nice | France | the Promenade des Anglais
Avignon | France | the Palace of the Popes
London | England | Big Ben; Tower Bridge; Buckingham Palace; Westminster Abbey; the British Museum; \
Trafalgar Square; Hyde Park; the Globe Theatre
Liverpool | England | the Cavern Club; Anfield
Manchester | England | Old Trafford; the Rylands Library
Oxford | England | the Bodleian Library; the Radcliffe Camera
Cambridge | England | the Fitzwilliam Museum; the Mathematical Bridge
Bath | England | the Royal Crescent; Pulteney Bridge
York | England | the Shambles
Edinburgh | Scotland | Arthur's Seat; the Royal Mile
Glasgow | Scotland | the Kelvingrove Museum; Hampden Park
Cardiff | Wales | the Principality Stadium
Dublin | Ireland | the Ha'penny Bridge; Temple Bar
Berlin | Germany | the Brandenburg Gate; the Reichstag; Checkpoint Charlie; the Pergamon Museum
Munich | Germany | the Marienplatz; the Hofbräuhaus
Dresden | Germany | the Zwinger; the Semperoper
Hamburg | Germany | the Elbphilharmonie; the Speicherstadt
Potsdam | Germany | Sanssouci
Rome | Italy | the Colosseum; the Trevi Fountain; the Roman Forum; the Spanish Steps; the Pantheon
Venice | Italy | the Rialto Bridge; the Doge's Palace
Florence | Italy | the Uffizi; the Ponte Vecchio
Milan | Italy | La Scala; Sforza Castle
Pisa | Italy | the Leaning Tower
Verona | Italy | Juliet's House
Turin | Italy | the Mole Antonelliana
Siena | Italy | the Piazza del Campo
Madrid | Spain | the Prado; the Puerta del Sol
Barcelona | Spain | the Sagrada Família; Park Güell
Seville | Spain | the Giralda; the Plaza de España
Granada | Spain | the Alhambra; the Generalife
Lisbon | Portugal | Belém Tower; the Jerónimos Monastery
Porto | Portugal | the Livraria Lello; the Clérigos Tower
Amsterdam | - | the Rijksmuseum; the Anne Frank House
Brussels | Belgium | the Atomium; Manneken Pis
Vienna | Austria | Schönbrunn Palace; the Hofburg
Salzburg | Austria | Mirabell Palace; Hohensalzburg Fortress
Innsbruck | Austria | the Golden Roof
Zurich | Switzerland | the Grossmünster
Geneva | Switzerland | the Jet d'Eau
Lucerne | Switzerland | the Chapel Bridge
Bern | Switzerland | the Zytglogge
Copenhagen | Denmark | the Little Mermaid; Tivoli Gardens
Stockholm | Sweden | the Vasa Museum; Gamla Stan
Gothenburg | Sweden | Liseberg
Oslo | Norway | the Munch Museum; Vigeland Park
Bergen | Norway | Bryggen
Helsinki | Finland | Temppeliaukio Church; Suomenlinna
Reykjavik | Iceland | Hallgrímskirkja; the Harpa
Tallinn | Estonia | Toompea Castle; Kadriorg Palace
Riga | Latvia | the House of the Blackheads
Vilnius | Lithuania | Gediminas Tower
Warsaw | Poland | Wilanów Palace; Łazienki Park
Krakow | Poland | Wawel Castle; the Cloth Hall
Prague | Czechia | Charles Bridge; the Astronomical Clock
Budapest | Hungary | the Chain Bridge; Fisherman's Bastion
Bratislava | Slovakia | the Blue Church
Ljubljana | Slovenia | the Dragon Bridge; the Triple Bridge
Zagreb | Croatia | the Museum of Broken Relationships
Split | Croatia | Diocletian's Palace
Belgrade | Serbia | Kalemegdan
Sofia | Bulgaria | Boyana Church
Bucharest | Romania | the Palace of Parliament
Athens | Greece | the Acropolis; the Parthenon
Thessaloniki | Greece | the White Tower
Istanbul | Turkey | Hagia Sophia; the Blue Mosque
Ankara | Turkey | Anıtkabir
Moscow | Russia | Red Square; the Kremlin
Cairo | Egypt | Tahrir Square; Khan el-Khalili
Giza | Egypt | the Great Sphinx; the Pyramid of Khufu
Luxor | Egypt | Karnak; the Valley of the Kings
Alexandria | Egypt | Pompey's Pillar
Marrakesh | Morocco | the Jemaa el-Fnaa; the Majorelle Garden
Casablanca | Morocco | the Hassan II Mosque
Rabat | Morocco | the Hassan Tower
Tunis | Tunisia | the Bardo Museum
Nairobi | Kenya | the Karen Blixen Museum
Dakar | Senegal | the African Renaissance Monument
Accra | Ghana | the Black Star Gate
Jerusalem | - | the Western Wall; the Dome of the Rock
Dubai | - | the Burj Khalifa; the Burj Al Arab
Mecca | - | the Kaaba
Doha | Qatar | the Museum of Islamic Art
Tehran | Iran | the Azadi Tower; Golestan Palace
Isfahan | Iran | Naqsh-e Jahan Square
Agra | India | the Taj Mahal
Delhi | India | the Red Fort; the Lotus Temple
Jaipur | India | the Hawa Mahal
Amritsar | India | the Golden Temple
Hyderabad | India | the Charminar
Kolkata | India | the Victoria Memorial
Lahore | Pakistan | the Badshahi Mosque
Islamabad | Pakistan | the Faisal Mosque
Kathmandu | Nepal | Boudhanath; Swayambhunath
Dhaka | Bangladesh | Lalbagh Fort
Bangkok | Thailand | Wat Arun; Wat Pho
Hanoi | Vietnam | the Temple of Literature
Singapore | Singapore | Marina Bay Sands; the Merlion
Jakarta | Indonesia | the Istiqlal Mosque
Beijing | China | the Forbidden City; Tiananmen Square
Shanghai | China | the Bund; the Oriental Pearl Tower
Tokyo | Japan | the Skytree; Senso-ji
Kyoto | Japan | Kinkaku-ji; Fushimi Inari
Osaka | Japan | Dotonbori
Nara | Japan | Todai-ji
Hiroshima | Japan | the Atomic Bomb Dome
Seoul | - | Gyeongbokgung; Namdaemun
Sydney | Australia | Bondi Beach; the Harbour Bridge
Melbourne | Australia | Federation Square; Flinders Street Station
Canberra | Australia | Questacon
Toronto | Canada | the CN Tower; Casa Loma
Ottawa | Canada | Parliament Hill
Montreal | Canada | Mount Royal
Vancouver | Canada | Stanley Park; Gastown
Chicago | - | the Willis Tower; Millennium Park
Boston | - | Fenway Park; the Freedom Trail
Philadelphia | - | the Liberty Bell; Independence Hall
Seattle | - | the Space Needle; Pike Place Market
Washington | - | the White House; the Lincoln Memorial
Memphis | - | Graceland
Havana | Cuba | the Malecón; El Capitolio
Bogota | Colombia | Monserrate; the Gold Museum
Lima | Peru | the Larco Museum
Cusco | Peru | Qorikancha
Santiago | Chile | La Moneda Palace
Brasilia | Brazil | the Alvorada Palace
Montevideo | Uruguay | Palacio Salvo
"""

CAPITALS = """
France Paris; England London; Scotland Edinburgh; Wales Cardiff; Ireland Dublin; Germany Berlin; Italy Rome;
Spain Madrid; Portugal Lisbon; Belgium Brussels; Austria Vienna; Switzerland Bern; Denmark Copenhagen;
Sweden Stockholm; Norway Oslo; Finland Helsinki; Iceland Reykjavik; Estonia Tallinn; Latvia Riga; Lithuania
Vilnius; Poland Warsaw; Czechia Prague; Hungary Budapest; Slovakia Bratislava; Slovenia Ljubljana; Croatia
Zagreb; Serbia Belgrade; Bulgaria Sofia; Romania Bucharest; Greece Athens; Turkey Ankara; Russia Moscow;
Egypt Cairo; Morocco Rabat; Tunisia Tunis; Kenya Nairobi; Senegal Dakar; Ghana Accra; Qatar Doha; Iran
Tehran; Pakistan Islamabad; Nepal Kathmandu; Bangladesh Dhaka; Thailand Bangkok; Vietnam Hanoi; Singapore
Singapore; Indonesia Jakarta; China Beijing; Japan Tokyo; Australia Canberra; Canada Ottawa; Cuba Havana;
Colombia Bogota; Peru Lima; Chile Santiago; Brazil Brasilia; Uruguay Montevideo
"""

SAYINGS = """
The quick brown fox jumps over the lazy dog.
The cat sat on the mat.
The dog ran through the park.
Once upon a time there was a king who lived in a castle.
Hello world.
My name is Atlas and I know where famous places are.
"""
